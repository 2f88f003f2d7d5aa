"""The official client against a server that answers as each test says, over real gRPC."""

from concurrent import futures

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from google.rpc import status_pb2

from vertex_training.customjob.google import job_service as client
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)

PARENT = "projects/local-x/locations/us-central1"
BODY = (
    '{"displayName":"x","jobSpec":{"workerPoolSpecs":[{"replicaCount":1}]},"labels":{"mine":"1"}}'
)


class Server(grpc.GenericRpcHandler):
    """Answers with ``replies[method]``: messages or status codes, the last one for ever."""

    def __init__(self):
        self.replies, self.requests = {}, []

    def service(self, details):
        method = details.method.rsplit("/", 1)[-1]

        def answer(request, context):
            self.requests.append((method, request))
            replies = self.replies[method]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            if isinstance(reply, grpc.StatusCode):
                context.abort(reply, "as told")
            return reply.SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def server():
    handler = Server()
    running = grpc.server(futures.ThreadPoolExecutor(2))
    running.add_generic_rpc_handlers([handler])
    handler.port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    yield handler
    running.stop(None)


@pytest.fixture
def jobs(server, monkeypatch):
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    return client.connect("local-x", "us-central1")


def job(**fields):
    return aiplatform_v1.CustomJob.pb(
        aiplatform_v1.CustomJob(name=f"{PARENT}/customJobs/1", **fields)
    )


def sent(server, method):
    return [request for name, request in server.requests if name == method]


def test_a_job_is_sent_with_its_own_and_the_stacks_labels(server, jobs):
    server.replies["CreateCustomJob"] = [
        job(state="JOB_STATE_PENDING", labels={"vt-request-id": "id1", "vt-request-digest": "d"})
    ]
    record = jobs.create(PARENT, BODY, {"request-id": "id1"})
    request = aiplatform_v1.CreateCustomJobRequest.deserialize(sent(server, "CreateCustomJob")[0])
    assert dict(request.custom_job.labels) == {"mine": "1", "request-id": "id1"}
    assert (record.state, record.digest) == ("JOB_STATE_PENDING", "d")


def test_a_missing_permission_is_distinguished_from_other_refusals(server, jobs):
    server.replies["CreateCustomJob"] = [grpc.StatusCode.PERMISSION_DENIED]
    with pytest.raises(PermissionDeniedError):
        jobs.create(PARENT, BODY, {})


def test_an_answer_without_a_name_leaves_doubt(server, jobs):
    server.replies["CreateCustomJob"] = [empty_pb2.Empty()]
    with pytest.raises(InDoubtError, match="without a job's name"):
        jobs.create(PARENT, BODY, {})


def test_find_reads_every_page(server, jobs):
    page = aiplatform_v1.ListCustomJobsResponse
    server.replies["ListCustomJobs"] = [
        page.pb(page(custom_jobs=[job()], next_page_token="2")),
        page.pb(page(custom_jobs=[job(), job()])),
        page.pb(page()),
    ]
    assert len(jobs.find(PARENT, "id1")) == 3


@pytest.mark.parametrize("code", ["PERMISSION_DENIED", "NOT_FOUND"])
def test_a_second_page_that_is_refused_is_a_refused_look(server, jobs, code):
    page = aiplatform_v1.ListCustomJobsResponse
    server.replies["ListCustomJobs"] = [
        page.pb(page(custom_jobs=[job()], next_page_token="2")),
        grpc.StatusCode[code],
    ]
    with pytest.raises(OperatorError, match=code):
        jobs.find(PARENT, "id1")


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_reads_are_repeated_and_a_missing_job_is_none(server, jobs, code):
    server.replies["GetCustomJob"] = [code, grpc.StatusCode.NOT_FOUND]
    assert jobs.get(f"{PARENT}/customJobs/1") is None
    assert len(sent(server, "GetCustomJob")) == 2


def test_when_repeating_does_not_help_the_last_answer_is_reported(server, jobs, monkeypatch):
    monkeypatch.setattr(client, "READ_DEADLINE", 0.5)
    server.replies["GetCustomJob"] = [grpc.StatusCode.UNAVAILABLE]
    with pytest.raises(OperatorError, match=r"did not answer get_custom_job: UNAVAILABLE: as told"):
        jobs.get(f"{PARENT}/customJobs/1")


def test_a_refused_look_is_an_error_and_not_an_absence(server, jobs):
    server.replies["ListCustomJobs"] = [grpc.StatusCode.PERMISSION_DENIED]
    with pytest.raises(OperatorError, match="PERMISSION_DENIED"):
        jobs.find(PARENT, "id1")


@pytest.mark.parametrize("code", ["NOT_FOUND", "FAILED_PRECONDITION"])
def test_cancelling_what_has_ended_is_fine(server, jobs, code):
    server.replies["CancelCustomJob"] = [grpc.StatusCode[code]]
    jobs.cancel(f"{PARENT}/customJobs/1")


def test_local_projects_and_the_emulator_belong_together(monkeypatch):
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    with pytest.raises(OperatorError, match="vt local shell"):
        client.connect("local-x", "us-central1")
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    with pytest.raises(OperatorError, match="no local one"):
        client.connect("acme-ml-prod", "us-central1")


def test_who_signs_in_after_a_refusal_is_let_in(monkeypatch):
    def nobody(*_, **__):
        raise DefaultCredentialsError

    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setattr("google.auth.default", nobody)
    with pytest.raises(OperatorError, match="gcloud auth application-default login"):
        client.connect("acme-ml-signed-out", "us-central1")
    monkeypatch.setattr("google.auth.default", lambda *_, **__: (AnonymousCredentials(), "x"))
    assert client.connect("acme-ml-signed-out", "us-central1")


def test_a_request_that_is_no_custom_job_is_not_sent(server, jobs):
    with pytest.raises(NotSubmittedError, match="nothing was sent"):
        jobs.create(PARENT, '{"nonsense":1}', {})
    assert server.requests == []


def test_a_deletion_that_ends_badly_is_reported_in_one_line(server, jobs):
    failed = operations_pb2.Operation(
        name="operations/1", done=True, error=status_pb2.Status(code=13, message="as told")
    )
    server.replies["DeleteCustomJob"] = [failed]
    with pytest.raises(OperatorError, match="x was deleted: INTERNAL: as told"):
        jobs.delete("x")
