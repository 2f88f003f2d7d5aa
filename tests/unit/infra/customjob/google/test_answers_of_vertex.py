"""Answers of Vertex AI: snapshots, refusals, and lists without an end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.logging_v2.types import ListLogEntriesResponse
from google.longrunning.operations_pb2 import ListOperationsResponse

from vertex_training.customjob.google import job_service, logs, tensorboards
from vertex_training.customjob.google.job_service import VertexJobs, read, send_once, snapshot
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol.ports import TERMINAL
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.serving.google.operations import GoogleOperations

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


@pytest.mark.filterwarnings("ignore:Unrecognized JobState")
def test_a_state_that_is_newer_than_the_client_is_its_number_and_no_end() -> None:
    found = snapshot(job(state=99), CUSTOM_JOB)
    assert (found.state, found.state in TERMINAL) == ("99", False)


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


def test_a_read_has_a_deadline_and_reports_its_retries(
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


def test_the_log_of_a_job_needs_no_call() -> None:
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


PARENT = "projects/local-x/locations/us-central1"
#: A first page, and what any other is: its own next one.
LISTS = {
    "ListCustomJobs": aiplatform_v1.ListCustomJobsResponse(next_page_token="x")._pb,
    "ListTensorboards": aiplatform_v1.ListTensorboardsResponse(next_page_token="x")._pb,
    "ListOperations": ListOperationsResponse(next_page_token="x"),
    "ListLogEntries": ListLogEntriesResponse(next_page_token="x")._pb,
}


class Lists(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        page = LISTS[handler_call_details.method.rpartition("/")[2]]
        return grpc.unary_unary_rpc_method_handler(lambda _, __: page.SerializeToString())


@pytest.fixture
def without_end(monkeypatch):
    """A service whose lists never end."""
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Lists(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{port}")
    client = job_service.client("local-x", "us-central1")
    assert isinstance(client, JobServiceClient)
    yield client
    server.stop(None)


@pytest.mark.timeout(20)
def test_a_list_whose_page_is_its_own_next_is_an_error_and_not_read_for_ever(without_end):
    def ends(method, call, *given, error=OperatorError):
        text = rf"(?:^|\s){method} of the service has no end: a page is its own next"
        with pytest.raises(error, match=text):
            call(*given)

    ends("ListCustomJobs", VertexJobs(without_end).find, PARENT, "id")
    ends("ListOperations", GoogleOperations(without_end).running, f"{PARENT}/endpoints/1")
    ends("ListLogEntries", list, logs.connect("local-x").lines("7"))
    body = f'{{"jobSpec": {{"tensorboard": "{PARENT}/tensorboards/0"}}}}'
    call = tensorboards.with_number
    ends("ListTensorboards", call, body, PARENT, "dev", "", error=NotSubmittedError)
