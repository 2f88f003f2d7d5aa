"""Answers of Batch, read as jobs of the protocol: whole snapshots, requests and refusals."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import batch_v1
from google.protobuf.json_format import ParseDict

from vertex_training.customjob.google.batch_service import (
    BatchJobs,
    as_custom_job,
    snapshot,
)
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
)

PARENT = "projects/acme-ml-dev/locations/us-central1"
DIGITS = "0123456789abcdef0123"
NAME = f"{PARENT}/jobs/dev-titanic-{DIGITS}"
LABELS = {
    "vt-stack": "dev", "vt-job": "titanic", "vt-run": "1", "vt-request-id": f"batch-{DIGITS}",
    "vt-request-digest": "d" * 20, "vt-request-turn": "1",
}  # fmt: skip
BODY = """{"displayName": "x", "labels": {"team": "ml"}, "jobSpec": {
  "serviceAccount": "a@b.c", "scheduling": {"timeout": "3600s"},
  "workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1,
    "containerSpec": {"imageUri": "i", "command": ["python", "-u"], "args": ["x"]}}]}}"""
SECOND = 10**9


def message(**more: Any) -> batch_v1.Job:
    """A job as Batch has it."""
    given: dict[str, Any] = {
        "name": NAME,
        "uid": "dev-titanic-uid-1",
        "labels": LABELS,
        "createTime": "1970-01-01T00:00:05Z",
        "updateTime": "1970-01-01T00:10:00Z",
        "taskGroups": [
            {
                "taskCount": "2",
                "taskSpec": {
                    "runnables": [
                        {"script": {"text": "s"}},
                        {"container": {"imageUri": "i", "entrypoint": "python",
                                       "commands": ["-u", "x"]}},
                    ],
                    "environment": {"variables": {"AIP_MODEL_DIR": "gs://out/x/model/"}},
                },
            }
        ],
        "allocationPolicy": {
            "instances": [{"policy": {"machineType": "n1-standard-4"}}],
            "serviceAccount": {"email": "a@b.c"},
        },
        "status": {"state": "RUNNING"},
        **more,
    }  # fmt: skip
    job = batch_v1.Job()
    ParseDict(given, batch_v1.Job.pb(job))
    return job


def event(description: str, time: str, code: int = 0) -> dict[str, Any]:
    return {
        "description": description,
        "eventTime": time,
        "taskExecution": {"exitCode": code},
    }


class Client:
    """Batch's client, which answers as told and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, list[tuple[str, Any]]()

    def _answer(self, method: str, asked: Any) -> Any:
        self.asked.append((method, asked))
        found = self.answers[method]
        if isinstance(found, Exception):
            raise found
        return found

    def create_job(self, request: Any, *, retry: Any, timeout: float) -> Any:
        assert (retry.timeout, timeout) == (45.0, 15.0)
        assert "initial=0.5, maximum=5.0" in str(retry)
        return self._answer("create", request)

    def get_job(self, *, name: str, retry: Any, timeout: float | None = None) -> Any:
        return self._answer("get", name)

    def list_jobs(self, *, request: Any, retry: Any, timeout: float) -> Any:
        return self._answer("list", request)

    def cancel_job(self, *, request: Any, retry: Any, timeout: float) -> Any:
        return self._answer("cancel", request)

    def delete_job(self, *, request: Any, retry: Any, timeout: float) -> Any:
        return self._answer("delete", request)

    def result(self, *, timeout: float) -> None:
        self._answer("result", timeout)


def jobs(**answers: Any) -> tuple[BatchJobs, Client]:
    client: Any = Client(**answers)
    return BatchJobs(client), client


RUNNING = JobSnapshot(
    name=NAME, state="JOB_STATE_RUNNING", created=5 * SECOND, digest="d" * 20, turn=1,
    output="gs://out/x", request_id=f"batch-{DIGITS}",
)  # fmt: skip


def test_a_job_is_read_field_by_field() -> None:
    assert snapshot(message()) == RUNNING
    found = as_custom_job(message())
    assert (found.display_name, dict(found.labels)) == (f"dev-titanic-{DIGITS}", LABELS)
    assert found.job_spec.service_account == "a@b.c"
    [pool] = found.job_spec.worker_pool_specs
    assert (pool.replica_count, pool.machine_spec.machine_type) == (2, "n1-standard-4")
    container = pool.container_spec
    assert (container.image_uri, list(container.command), list(container.args)) == (
        *("i", ["python"], ["-u", "x"]),
    )
    bare = as_custom_job(message(taskGroups=[], allocationPolicy={}, status={}))
    assert bare.state.name == "JOB_STATE_UNSPECIFIED"
    [pool] = bare.job_spec.worker_pool_specs
    assert (pool.replica_count, pool.machine_spec.machine_type) == (0, "")
    assert not bare.job_spec.base_output_directory.output_uri_prefix
    plain = {"taskCount": "1", "taskSpec": {"runnables": [{"container": {"imageUri": "i"}}]}}
    [pool] = as_custom_job(message(taskGroups=[plain])).job_spec.worker_pool_specs
    assert (list(pool.container_spec.command), list(pool.container_spec.args)) == ([], [])


@pytest.mark.parametrize(
    ("status", "state", "began", "ended", "error"),
    [
        ({"state": "QUEUED"}, "QUEUED", 0, 0, ""),
        ({"state": "SCHEDULED"}, "PENDING", 0, 0, ""),
        ({"state": "CANCELLATION_IN_PROGRESS"}, "CANCELLING", 0, 0, ""),
        ({"state": "DELETION_IN_PROGRESS"}, "CANCELLING", 0, 0, ""),
        ({"state": "SUCCEEDED", "runDuration": "240s"}, "SUCCEEDED", 360, 600, ""),
        (
            {"state": "FAILED", "runDuration": "240s", "statusEvents": [
                event("set to RUNNING", "1970-01-01T00:01:00Z"),
                event("Task failed", "1970-01-01T00:03:00Z", 50005),
                event("Job failed", "1970-01-01T00:04:00Z")]},
            *("FAILED", 60, 600, "Task failed 50005: it ran longer than its timeout. Job failed"),
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Unrecognized State")
def test_states_times_and_reasons_are_those_of_batch(
    status: Any, state: str, began: int, ended: int, error: str
) -> None:
    found = snapshot(message(status=status))
    assert (found.short_state, found.started, found.ended, found.error) == (
        *(state, began * SECOND, ended * SECOND, error),
    )
    assert not found.out_of_stock


def test_a_job_is_sent_under_the_name_of_its_request() -> None:
    batch, client = jobs(create=message())
    labels = {**LABELS, "vt-request-turn": "3"}
    made = message(
        labels=labels,
        taskGroups=[
            {"taskSpec": {"runnables": [
                {"container": {"imageUri": "i", "entrypoint": "python", "commands": ["-u", "x"]}}
            ]}}
        ],
    )  # fmt: skip
    client.answers["create"] = made
    found = batch.create(PARENT, BODY, labels)
    assert (found.name, found.turn) == (NAME, 3)
    [(_, request)] = client.asked
    assert request["parent"] == PARENT
    assert request["job_id"] == f"dev-titanic-{DIGITS}-t3"
    assert uuid.UUID(request["request_id"]).version == 4
    sent = request["job"]
    assert dict(sent.labels) == {**labels, "team": "ml"}
    assert sent.allocation_policy.service_account.email == "a@b.c"
    assert list(sent.allocation_policy.network.network_interfaces) == []
    assert list(sent.notifications) == []


def test_subnet_and_topics_are_those_of_the_stack() -> None:
    subnet = "projects/p/regions/us-central1/subnetworks/s"
    told = {"pubsubTopic": "projects/p/topics/t", "message": {"type": "JOB_STATE_CHANGED"}}
    client: Any = Client(create=exceptions.InvalidArgument("as told"))
    with pytest.raises(NotSubmittedError):
        BatchJobs(client, subnet, [told]).create(PARENT, BODY, LABELS)
    [(_, request)] = client.asked
    [interface] = request["job"].allocation_policy.network.network_interfaces
    assert (interface.subnetwork, interface.no_external_ip_address) == (subnet, True)
    [topic] = request["job"].notifications
    assert topic.pubsub_topic == "projects/p/topics/t"


ONE = {
    "taskGroups": [
        {"taskSpec": {"runnables": [
            {"container": {"imageUri": "i", "entrypoint": "python", "commands": ["-u", "x"]}}
        ]}}
    ]
}  # fmt: skip


def container(**changes: Any) -> dict[str, Any]:
    given = {"imageUri": "i", "entrypoint": "python", "commands": ["-u", "x"], **changes}
    return {"taskGroups": [{"taskSpec": {"runnables": [{"container": given}]}}]}


@pytest.mark.parametrize(
    ("there", "is_ours"),
    [
        (ONE, True),
        ({**ONE, "labels": {**LABELS, "other": "x"}}, True),
        ({**ONE, "labels": {**LABELS, "vt-request-id": "batch-x"}}, False),
        ({**ONE, "labels": {**LABELS, "vt-request-digest": "e"}}, False),
        ({**ONE, "labels": {}}, False),
        ({**ONE, "allocationPolicy": {"serviceAccount": {"email": "other@b.c"}}}, False),
    ],
)  # fmt: skip
def test_a_name_that_is_taken_is_ours_if_it_is_what_was_sent(there: Any, is_ours: bool) -> None:
    batch, client = jobs(create=exceptions.AlreadyExists("it is there"), get=message(**there))
    if is_ours:
        assert batch.create(PARENT, BODY, LABELS).name == NAME
    else:
        with pytest.raises(NotSubmittedError) as refused:
            batch.create(PARENT, BODY, LABELS)
        assert str(refused.value) == (
            f"there is a job {NAME} already, and it is not what this request asks for: somebody "
            f"else made it. Nothing was submitted. Delete it (`gcloud batch jobs delete "
            f"dev-titanic-{DIGITS}`), or raise run, which gives this job another name."
        )
    assert client.asked[1] == ("get", NAME)


@pytest.mark.parametrize(
    ("error", "raised", "text"),
    [
        (exceptions.InvalidArgument("bad"), NotSubmittedError,
         "Batch refused the job, nothing was submitted: INVALID_ARGUMENT: bad Hint: correct the "
         "job file."),
        (exceptions.RetryError("45 s", cause=exceptions.ServiceUnavailable("late")), InDoubtError,
         "no certain answer from Batch: UNAVAILABLE: late"),
    ],
)  # fmt: skip
def test_a_refusal_names_batch(error: Exception, raised: type[Exception], text: str) -> None:
    with pytest.raises(raised) as refused:
        jobs(create=error)[0].create(PARENT, BODY, LABELS)
    assert (type(refused.value), str(refused.value)) == (raised, text)


def test_a_job_that_is_gone_is_none() -> None:
    batch, client = jobs(get=message())
    assert (batch.get(NAME), batch.log_ids(NAME)) == (RUNNING, ["dev-titanic-uid-1"])
    assert client.asked == [("get", NAME)] * 2
    client.answers["get"] = message(uid="")
    assert batch.log_ids(NAME) == []
    client.answers["get"] = exceptions.NotFound("gone")
    assert (batch.get(NAME), batch.message(NAME), batch.log_ids(NAME)) == (None, None, [])
    client.answers["get"] = exceptions.Forbidden("no")
    with pytest.raises(OperatorError, match=r"Batch did not answer get_job: .*no"):
        batch.get(NAME)


def test_jobs_of_a_request_have_its_label_and_its_name() -> None:
    foreign = message(name=f"{PARENT}/jobs/mine")
    later = message(name=f"{NAME}-t2")
    batch, client = jobs(list=[foreign, message(), later])
    assert [each.name for each in batch.find(PARENT, f"batch-{DIGITS}")] == [NAME, f"{NAME}-t2"]
    label = f'labels.vt-request-id="batch-{DIGITS}"'
    assert client.asked == [("list", {"parent": PARENT, "filter": label})]
    assert batch.listed(PARENT, ["a", "b"]) == [foreign, message(), later]
    assert client.asked[1] == ("list", {"parent": PARENT, "filter": "a AND b"})


def test_where_the_api_is_off_there_are_no_jobs() -> None:
    off = exceptions.Forbidden("off", error_info=_info("SERVICE_DISABLED"))
    for error in (
        off,
        exceptions.Forbidden("off", error_info=_info("API_DISABLED")),
        exceptions.Forbidden("Batch API has not been used in project 1 before"),
        exceptions.MethodNotImplemented("no such service"),
    ):
        assert jobs(list=error)[0].listed(PARENT, []) == []
    for error in (
        exceptions.Forbidden("no right", error_info=_info("IAM_PERMISSION_DENIED")),
        exceptions.Forbidden("no right"),
    ):
        with pytest.raises(OperatorError, match="no right"):
            jobs(list=error)[0].listed(PARENT, [])
    for error in (exceptions.NotFound("no region"), exceptions.FailedPrecondition("no region")):
        with pytest.raises(OperatorError) as raised:
            jobs(list=error)[0].listed(PARENT, [])
        assert str(raised.value) == f"Batch did not list jobs of {PARENT}: no region"


def _info(reason: str) -> Any:
    from google.rpc import error_details_pb2

    return error_details_pb2.ErrorInfo(reason=reason)


def test_an_ended_job_is_not_cancelled_and_a_missing_one_not_deleted() -> None:
    batch, client = jobs(cancel=None)
    batch.cancel(NAME)
    for error in (exceptions.FailedPrecondition("over"), exceptions.NotFound("gone")):
        client.answers["cancel"] = error
        batch.cancel(NAME)
    assert client.asked == [("cancel", {"name": NAME})] * 3
    client.answers["cancel"] = exceptions.Forbidden("no")
    with pytest.raises(OperatorError):
        batch.cancel(NAME)
    batch, client = jobs(delete=exceptions.NotFound("gone"))
    batch.delete(NAME)
    client.answers |= {"delete": client, "result": None}
    batch.delete(NAME)
    assert client.asked[1:] == [("delete", {"name": NAME}), ("result", 60.0)]
    for error in (exceptions.Aborted("late"), TimeoutError("late")):
        client.answers["result"] = error
        with pytest.raises(OperatorError) as raised:
            batch.delete(NAME)
        assert str(raised.value) == f"Batch did not confirm that {NAME} was deleted: late"
