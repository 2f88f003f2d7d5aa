"""Which service the official client is made for."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.logging_v2.types import ListLogEntriesResponse
from google.longrunning.operations_pb2 import ListOperationsResponse

from vertex_training.customjob.google import job_service, logs, tensorboards
from vertex_training.customjob.google.job_service import VertexJobs
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.serving.google.operations import GoogleOperations

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
