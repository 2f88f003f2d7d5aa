"""Answers of Vertex AI: whole snapshots of jobs, and the whole text of each refusal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError, TransportError
from google.cloud import aiplatform_v1

from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.job_service import VertexJobs, read, send_once, snapshot
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol.ports import TERMINAL, JobSnapshot
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)

NAME = "projects/1/locations/us-central1/customJobs/7"
OUTPUT = {"output_uri_prefix": "gs://out/x"}
TIMES = {
    "create_time": {"seconds": 5},
    "start_time": {"seconds": 60, "nanos": 7},
    "end_time": {"seconds": 600},
}
LABELS = {"vt-request-id": "id1", "vt-request-digest": "d" * 20, "vt-request-turn": "3"}
POOLS = [
    {"machine_spec": {"accelerator_type": "NVIDIA_L4", "accelerator_count": 2}, "replica_count": 1},
    {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1},
    {"machine_spec": {"accelerator_type": "NVIDIA_L4", "accelerator_count": 4}, "replica_count": 2},
]
WHOLE = JobSnapshot(
    name=NAME,
    state="JOB_STATE_RUNNING",
    created=5 * 10**9,
    digest="d" * 20,
    error="",
    turn=3,
    started=60 * 10**9 + 7,
    ended=600 * 10**9,
    output="gs://out/x",
    request_id="id1",
    out_of_stock=False,
    accelerators=(("workerpool0-0", 2), ("workerpool2-0", 4), ("workerpool2-1", 4)),
)


def job(**changes: Any) -> aiplatform_v1.CustomJob:
    given: dict[str, Any] = {
        "name": NAME,
        "state": "JOB_STATE_RUNNING",
        "labels": LABELS,
        "job_spec": {"worker_pool_specs": POOLS, "base_output_directory": OUTPUT},
        **TIMES,
        **changes,
    }
    return aiplatform_v1.CustomJob(**given)


def test_a_job_is_read_field_by_field() -> None:
    assert snapshot(job(), CUSTOM_JOB) == WHOLE
    assert snapshot(aiplatform_v1.CustomJob(name=NAME), CUSTOM_JOB) == JobSnapshot(
        NAME, "JOB_STATE_UNSPECIFIED", 0, ""
    )
    assert snapshot(job(), BATCH_JOB).accelerators == ()


def test_a_tuning_job_has_labels_of_its_own_and_the_folder_of_its_trials() -> None:
    labels = {key.replace("vt-", "vt-tuning-"): value for key, value in LABELS.items()}
    tuning = aiplatform_v1.HyperparameterTuningJob(
        name=NAME,
        state="JOB_STATE_FAILED",
        labels={**labels, "vt-request-id": "of another kind"},
        error={"code": 9, "message": "no trial worked"},
        trial_job_spec={"worker_pool_specs": POOLS, "base_output_directory": OUTPUT},
        **TIMES,
    )
    found = snapshot(tuning, TUNING_JOB)
    assert found == JobSnapshot(
        NAME, "JOB_STATE_FAILED", WHOLE.created, "d" * 20, "no trial worked", 3,
        WHOLE.started, WHOLE.ended, "gs://out/x", "id1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("label", "turn"), [("", 1), ("2", 2), ("x", 1), ("-2", 1), ("²", 1), ("٢", 1)]
)
def test_the_turn_of_a_job_is_a_number_or_the_first(label: str, turn: int) -> None:
    assert snapshot(job(labels=LABELS | {"vt-request-turn": label}), CUSTOM_JOB).turn == turn


@pytest.mark.filterwarnings("ignore:Unrecognized JobState")
def test_a_state_that_is_newer_than_the_client_is_its_number_and_no_end() -> None:
    found = snapshot(job(state=99), CUSTOM_JOB)
    assert (found.state, found.state in TERMINAL) == ("99", False)


STOCK_OUT = "STOCKOUT: Resources are insufficient in region: us-central1."


@pytest.mark.parametrize(
    ("state", "error", "out_of_stock"),
    [
        ("JOB_STATE_FAILED", STOCK_OUT, True),
        ("JOB_STATE_CANCELLED", STOCK_OUT, False),
        ("JOB_STATE_FAILED", "out of memory", False),
    ],
)
def test_only_a_job_that_failed_is_out_of_stock(state: str, error: str, out_of_stock: bool) -> None:
    found = snapshot(job(state=state, error={"code": 8, "message": error}), CUSTOM_JOB)
    assert (found.error, found.out_of_stock) == (error, out_of_stock)


def refuse(error: Exception) -> Any:
    """A call that ends with this error."""

    def get_custom_job(**_: Any) -> None:
        raise error

    return get_custom_job


SIGN_IN = "sign in: gcloud auth application-default login"


@pytest.mark.parametrize(
    ("error", "raised", "text"),
    [
        *(
            (error("as told"), NotSubmittedError,
             f"Vertex AI refused the job, nothing was submitted: {code}: as told Hint: {hint}.")
            for error, code, hint in (
                (exceptions.InvalidArgument, "INVALID_ARGUMENT", "correct the job file"),
                (exceptions.OutOfRange, "OUT_OF_RANGE", "correct the job file"),
                (exceptions.Unauthenticated, "UNAUTHENTICATED", SIGN_IN),
                (exceptions.NotFound, "NOT_FOUND",
                 "check project, region and the resources the job names"),
                (exceptions.FailedPrecondition, "FAILED_PRECONDITION",
                 "do what the message says, then run again"),
                (exceptions.MethodNotImplemented, "UNIMPLEMENTED",
                 "the service at this address does not offer such jobs"),
                (exceptions.ResourceExhausted, "RESOURCE_EXHAUSTED",
                 "wait, or ask for more quota of aiplatform.googleapis.com"),
            )
        ),
        (exceptions.PermissionDenied("as told"), PermissionDeniedError,
         "Vertex AI refused the job, nothing was submitted: PERMISSION_DENIED: as told Hint: grant "
         "what is missing; a new grant can take some minutes to have effect."),
        (exceptions.ServiceUnavailable("as told"), InDoubtError,
         "no certain answer from Vertex AI: UNAVAILABLE: as told"),
        (RefreshError("expired"), NotSubmittedError,
         "no credentials for Vertex AI, nothing was sent: expired"),
    ],
)  # fmt: skip
def test_a_refusal_of_a_job_says_what_to_do(
    error: Exception, raised: type[Exception], text: str
) -> None:
    with pytest.raises(raised) as refused:
        send_once(refuse(error), "the job", job_service.PROVES_NOT_CREATED)
    assert type(refused.value) is raised
    assert str(refused.value) == text


def test_a_job_is_sent_once_within_a_deadline() -> None:
    asked: list[Any] = []

    def create(**arguments: Any) -> str:
        asked.append(arguments)
        return "answer"

    assert send_once(create, "the job", {}, parent="p") == "answer"
    assert asked == [{"retry": None, "timeout": 60.0, "parent": "p"}]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (exceptions.PermissionDenied("no"),
         "PERMISSION_DENIED: no Hint: reading jobs takes roles/aiplatform.viewer in the project, "
         "reading their logs roles/logging.viewer; the API must be enabled."),
        (exceptions.Unauthenticated("no"), f"UNAUTHENTICATED: no Hint: {SIGN_IN}."),
        (RefreshError("no"),
         "RefreshError: no Hint: sign in again: gcloud auth application-default login."),
        (TransportError("no"), "TransportError: no"),
        (exceptions.InternalServerError("no"), "INTERNAL: no"),
        (exceptions.RetryError("60 s", cause=exceptions.ServiceUnavailable("late")),
         "UNAVAILABLE: late"),
        (exceptions.RetryError("60 s", cause=None), "RetryError: 60 s"),
    ],
)  # fmt: skip
def test_a_read_that_fails_says_why_and_what_to_do(error: Exception, text: str) -> None:
    with pytest.raises(OperatorError) as raised:
        read(refuse(error), name="x")
    assert str(raised.value) == f"Vertex AI did not answer get_custom_job: {text}"


@pytest.mark.parametrize("error", [exceptions.NotFound("x"), exceptions.FailedPrecondition("x")])
def test_what_is_not_there_is_for_the_caller_to_tell(error: Exception) -> None:
    with pytest.raises(type(error)):
        read(refuse(error), name="x")


def test_a_read_is_told_how_long_it_may_take_and_who_listens_hears_of_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(job_service, "RETRY_LISTENERS", [lambda *told: heard.append(told)])
    asked: list[Any] = []

    def get_custom_job(*, retry: Any, timeout: float, **arguments: Any) -> str:
        asked.append((retry.timeout, timeout, arguments))
        retry._on_error(late)
        return "answer"

    late = exceptions.ServiceUnavailable("late")
    assert read(get_custom_job, name="x") == "answer"
    assert asked == [(60.0, 20.0, {"name": "x"})]
    assert heard == [("get_custom_job", late)]


TRIALS = [
    {"state": "INFEASIBLE", "custom_job": "projects/1/locations/r/customJobs/5"},
    {"state": "SUCCEEDED", "custom_job": "projects/1/locations/r/customJobs/6"},
    {"state": "INFEASIBLE", "custom_job": "projects/1/locations/r/customJobs/8"},
    {"state": "INFEASIBLE"},
]


@pytest.mark.parametrize(("count", "ids"), [(4, ["8"]), (2, ["5"]), (0, [])])
def test_the_log_of_a_tuning_job_is_that_of_the_last_trial_that_failed(
    count: int, ids: list[str]
) -> None:
    tuning = aiplatform_v1.HyperparameterTuningJob(name=NAME, trials=TRIALS[:count])
    client: Any = SimpleNamespace(get_hyperparameter_tuning_job=lambda **_: tuning)
    assert VertexJobs(client, TUNING_JOB).log_ids(NAME) == ids


def test_the_log_of_a_job_is_its_own_and_nobody_is_asked() -> None:
    client: Any = SimpleNamespace()
    assert VertexJobs(client).log_ids(NAME) == ["7"]


@pytest.mark.parametrize("error", [exceptions.NotFound("gone"), None])
def test_a_record_that_is_gone_is_deleted(error: Exception | None) -> None:
    waited: list[float] = []
    operation = SimpleNamespace(result=lambda *, timeout: waited.append(timeout))
    delete = refuse(error) if error else lambda **_: operation
    delete.__name__ = "delete_custom_job"
    client: Any = SimpleNamespace(delete_custom_job=delete)
    VertexJobs(client).delete(NAME)
    assert waited == ([] if error else [60.0])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (exceptions.Aborted("late"), "ABORTED: late"),
        (TimeoutError("late"), "TimeoutError: late"),
        (RefreshError("late"), "RefreshError: late"),
    ],
)
def test_a_deletion_that_is_not_confirmed_is_told(error: Exception, told: str) -> None:
    def result(*, timeout: float) -> None:
        raise error

    def delete_custom_job(**_: Any) -> Any:
        return SimpleNamespace(result=result)

    client: Any = SimpleNamespace(delete_custom_job=delete_custom_job)
    with pytest.raises(OperatorError) as raised:
        VertexJobs(client).delete(NAME)
    assert str(raised.value) == f"Vertex AI did not confirm that {NAME} was deleted: {told}"


@pytest.mark.parametrize("error", [exceptions.NotFound, exceptions.FailedPrecondition])
def test_a_list_that_is_refused_names_the_place(error: Any) -> None:
    def list_custom_jobs(**_: Any) -> None:
        raise error("no region")

    client: Any = SimpleNamespace(list_custom_jobs=list_custom_jobs)
    with pytest.raises(OperatorError) as raised:
        VertexJobs(client).find("projects/p/locations/r", "id1")
    code = {"NotFound": "NOT_FOUND"}.get(error.__name__, "FAILED_PRECONDITION")
    assert str(raised.value) == (
        f"Vertex AI did not list jobs of projects/p/locations/r: {code}: no region"
    )


@pytest.mark.parametrize(
    ("project", "address", "text"),
    [
        ("local-x", "", "project 'local-x' lives in the local cloud, and VERTEX_EMULATOR_HOST is "
         "not set. Run this in `vt local shell`."),
        ("acme", "127.0.0.1:1", "VERTEX_EMULATOR_HOST is set, but project 'acme' is no local one "
         "(local-…). Leave `vt local shell` to reach Google Cloud."),
    ],
)  # fmt: skip
def test_a_project_and_the_address_of_the_local_cloud_belong_together(
    monkeypatch: pytest.MonkeyPatch, project: str, address: str, text: str
) -> None:
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", address)
    with pytest.raises(OperatorError) as raised:
        job_service.local_address(project)
    assert str(raised.value) == text
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:2" if project == "local-x" else "")
    expected = "127.0.0.1:2" if project == "local-x" else None
    assert job_service.local_address(project) == expected


def test_each_call_names_its_place_or_its_job() -> None:
    asked: list[Any] = []

    def method(verb: str, answer: Any) -> Any:
        def call(*, retry: Any, timeout: float, **arguments: Any) -> Any:
            asked.append((verb, arguments))
            return answer

        return call

    operation = SimpleNamespace(result=lambda *, timeout: None)
    answers = {"create": job(), "get": job(), "cancel": None, "delete": operation}
    methods = {f"{verb}_custom_job": method(verb, each) for verb, each in answers.items()}
    client: Any = SimpleNamespace(**methods, list_custom_jobs=method("list", [job()]))
    jobs = VertexJobs(client)
    body = '{"displayName":"x","labels":{"team":"ml"}}'
    assert jobs.create("projects/p/locations/r", body, {"vt-run": "2"}) == WHOLE
    assert jobs.get(NAME) == WHOLE
    assert jobs.find("projects/p/locations/r", "id1") == [WHOLE]
    assert jobs.labelled("projects/p/locations/r", {"vt-job": "a", "vt-run": "2"}) == [WHOLE]
    jobs.cancel(NAME)
    jobs.delete(NAME)
    sent = aiplatform_v1.CustomJob(display_name="x", labels={"team": "ml", "vt-run": "2"})
    place = {"parent": "projects/p/locations/r"}
    by_two = "labels.vt-job=a AND labels.vt-run=2"
    assert asked == [
        ("create", {**place, "custom_job": sent}),
        ("get", {"name": NAME}),
        ("list", {"request": {**place, "filter": "labels.vt-request-id=id1"}}),
        ("list", {"request": {**place, "filter": by_two}}),
        ("cancel", {"name": NAME}),
        ("delete", {"name": NAME}),
    ]
