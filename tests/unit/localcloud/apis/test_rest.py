"""What a request over REST asks the gRPC server beside it, and what is made of its answer."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api import httpbody_pb2
from google.cloud import aiplatform_v1 as vertex

from localgcp.apis import rest
from localgcp.apis.rest import RestFront
from localgcp.apis.server import serve
from localgcp.errors import (
    ApiError,
    ExchangeEndedError,
    InvalidRequestError,
    RefusedRequestError,
)
from localgcp.serving.service import PredictionService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.apis.served import METHODS

JOB = "projects/p/locations/l/customJobs/1"
JSON = "application/json; charset=UTF-8"


class Server(grpc.GenericRpcHandler):
    """A gRPC server that notes each call and gives one answer, or refuses."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes, Any]] = []
        self.answer: bytes | grpc.StatusCode = b""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        def answered(request: bytes, context: grpc.ServicerContext) -> bytes:
            sent = dict(context.invocation_metadata()).get("vt-connection")
            self.calls.append((handler_call_details.method, request, sent))
            if isinstance(self.answer, bytes):
                return self.answer
            context.abort(self.answer, "told so")

        return grpc.unary_unary_rpc_method_handler(answered)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    handler = Server()
    made = grpc.server(futures.ThreadPoolExecutor(1), handlers=[handler])
    path = tmp_path_factory.mktemp("s") / "s"
    made.add_insecure_port(f"unix:{path}")
    made.start()
    yield handler, path
    made.stop(None).wait()


def front(path: Path, also: Any = lambda *_: None, *, takes_beta: bool = False) -> RestFront:
    methods = [*METHODS.values(), *PredictionService.api.methods(PredictionService)]
    made = RestFront(methods, also, takes_beta=takes_beta)
    made.at(path, 1)
    return made


def test_a_request_is_a_call_whose_answer_is_json(server: tuple[Server, Path]) -> None:
    handler, place = server
    handler.answer = vertex.CustomJob.serialize(vertex.CustomJob(name=JOB, display_name="ä"))
    body, kind = front(place).answer("GET", f"/v1/{JOB}", b"", "connection-7")
    assert (json.loads(body), kind) == ({"name": JOB, "displayName": "ä"}, JSON)
    assert "ä".encode() in body
    [(path, request, sent)] = handler.calls
    assert path == "/google.cloud.aiplatform.v1.JobService/GetCustomJob"
    assert vertex.GetCustomJobRequest.deserialize(request).name == JOB
    assert sent == "connection-7"


@pytest.mark.parametrize(
    ("verb", "target", "body", "method", "request_"),
    [
        ("GET", "/v1/projects/p/locations/l/customJobs?pageSize=7&filter=", b"", "ListCustomJobs",
         vertex.ListCustomJobsRequest(parent="projects/p/locations/l", page_size=7)),
        ("POST", "/v1/projects/p/locations/l/customJobs", b'{"displayName": "x"}',
         "CreateCustomJob",
         vertex.CreateCustomJobRequest(
             parent="projects/p/locations/l", custom_job=vertex.CustomJob(display_name="x")
         )),
        ("POST", f"/v1/{JOB}:cancel", b"{}", "CancelCustomJob",
         vertex.CancelCustomJobRequest(name=JOB)),
    ],
)  # fmt: skip
def test_path_query_and_body_are_the_fields_of_a_call(
    server: tuple[Server, Path], verb: str, target: str, body: bytes, method: str, request_: Any
) -> None:
    handler, place = server
    front(place).answer(verb, target, body)
    [(path, request, sent)] = handler.calls
    assert path == f"/google.cloud.aiplatform.v1.JobService/{method}"
    assert type(request_).deserialize(request) == request_
    assert sent is None


def test_content_that_is_no_json_goes_through_as_it_is(server: tuple[Server, Path]) -> None:
    handler, place = server
    answered = httpbody_pb2.HttpBody(content_type="text/csv", data=b"1,2\n")
    handler.answer = answered.SerializeToString()
    endpoint = "projects/p/locations/l/endpoints/7"
    found = front(place).answer("POST", f"/v1/{endpoint}:rawPredict", b"\xff{", "", "image/png")
    assert found == (b"1,2\n", "text/csv")
    [(_, request, _)] = handler.calls
    body = httpbody_pb2.HttpBody(content_type="image/png", data=b"\xff{")
    wanted = vertex.RawPredictRequest(endpoint=endpoint, http_body=body)
    assert vertex.RawPredictRequest.deserialize(request) == wanted


BETA = "/v1beta1/projects/v1beta1/locations/v1beta1/customJobs/1"


def test_a_beta_is_the_first_version_where_it_is_taken(server: tuple[Server, Path]) -> None:
    handler, place = server
    front(place, takes_beta=True).answer("GET", BETA, b"")
    front(place, takes_beta=True).answer("GET", f"/v1/{JOB}", b"")
    names = [
        vertex.GetCustomJobRequest.deserialize(request).name for _, request, _ in handler.calls
    ]
    assert names == [BETA.removeprefix("/v1beta1/"), JOB]
    for takes_beta, path in ((False, BETA), (True, f"/x{BETA}"), (True, BETA.replace("1", "2", 1))):
        with pytest.raises(RefusedRequestError) as told:
            front(place, takes_beta=takes_beta).answer("GET", path, b"")
        assert told.value.status == 404


def test_what_is_no_method_of_the_server_is_asked_elsewhere_or_not_found() -> None:
    asked: list[Any] = []

    def also(*given: Any) -> bytes | None:
        asked.append(given)
        return b"[]" if given[1] == "/x?y=z" else None

    made = front(Path("nowhere"), also)
    assert made.answer("PUT", "/x?y=z", b"body", "connection-7", "text/plain") == (b"[]", JSON)
    assert asked == [("PUT", "/x?y=z", b"body", "connection-7")]
    long = f"/{'a' * 298}"
    for path, shown in (("/z?y=z", "/z"), (long, long), (f"{long}bc", f"{long}b")):
        with pytest.raises(RefusedRequestError) as told:
            made.answer("GET", path, b"")
        text = f"there is no method of the local cloud at GET {shown}."
        assert (told.value.status, str(told.value)) == (
            404, f"{text} docs/local-stack.md lists what there is.",
        )  # fmt: skip


class Jobs:
    """Refuses to show a job with the code that its name ends with."""

    api = JobService.api

    def get_custom_job(self, request: vertex.GetCustomJobRequest) -> vertex.CustomJob:
        word = request.name.rpartition("/")[2]
        if word == "none":
            raise LookupError("secret")
        raise ApiError(grpc.StatusCode[word], "told so")


def refuse(_verb: str, target: str, body: bytes, _connection: str) -> bytes | None:
    """Refuses with the status and words of the path."""
    _, status, *words = target.split("/")
    if status == "echo":
        return body
    if status == "fields":
        raise InvalidRequestError([("a.b", "is wrong"), ("", "is missing")])
    if status == "reason":
        error = RefusedRequestError(409, "told so", "ALREADY_EXISTS")
        error.reason = "duplicate"
        raise error
    if status == "gone":
        raise ExchangeEndedError
    raise RefusedRequestError(int(status), "told so", *words)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("s")
    made = serve([Jobs()], 0, folder=folder, also=refuse)  # pyright: ignore[reportArgumentType]
    yield made.port
    made.stop(None).wait()


def ask(port: int, verb: str, target: str, body: bytes = b"") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(verb, target, body)
    answer = connection.getresponse()
    answer.msg["content"] = answer.read().decode()
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("CANCELLED", 499), ("UNKNOWN", 500), ("INVALID_ARGUMENT", 400),
        ("DEADLINE_EXCEEDED", 504), ("NOT_FOUND", 404), ("ALREADY_EXISTS", 409),
        ("PERMISSION_DENIED", 403), ("UNAUTHENTICATED", 401), ("RESOURCE_EXHAUSTED", 429),
        ("FAILED_PRECONDITION", 400), ("ABORTED", 409), ("OUT_OF_RANGE", 400),
        ("UNIMPLEMENTED", 501), ("INTERNAL", 500), ("UNAVAILABLE", 503), ("DATA_LOSS", 500),
    ],
)  # fmt: skip
def test_a_code_of_grpc_is_a_status_of_http(port: int, code: str, status: int) -> None:
    """https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto"""
    answer = ask(port, "GET", f"/v1/projects/p/locations/l/customJobs/{code}")
    error = {"code": status, "message": "told so", "status": code}
    assert (answer.status, json.loads(answer.msg["content"])) == (status, {"error": error})


@pytest.mark.parametrize(
    ("target", "status", "error"),
    [
        *(
            (f"/{status}", status, {"message": "local cloud: told so", "status": name})
            for status, name in (
                (400, "INVALID_ARGUMENT"), (401, "UNAUTHENTICATED"), (403, "PERMISSION_DENIED"),
                (404, "NOT_FOUND"), (405, "UNKNOWN"), (409, "ABORTED"), (413, "INVALID_ARGUMENT"),
                (429, "RESOURCE_EXHAUSTED"), (499, "CANCELLED"), (500, "INTERNAL"),
                (501, "UNIMPLEMENTED"), (503, "UNAVAILABLE"), (504, "DEADLINE_EXCEEDED"),
            )
        ),
        ("/409/ALREADY_EXISTS", 409,
         {"message": "local cloud: told so", "status": "ALREADY_EXISTS"}),
        ("/reason", 409,
         {"message": "local cloud: told so", "status": "ALREADY_EXISTS",
          "errors": [{"message": "local cloud: told so", "domain": "global",
                      "reason": "duplicate"}]}),
        ("/v1/projects/p/locations/l/customJobs/none", 500,
         {"message": "Internal error encountered: LookupError.", "status": "INTERNAL"}),
        ("/x", 500, {"message": "Internal error encountered: ValueError.", "status": "INTERNAL"}),
    ],
)  # fmt: skip
def test_a_refusal_has_the_form_of_googles(
    port: int, target: str, status: int, error: dict[str, Any]
) -> None:
    """https://google.aip.dev/193"""
    answer = ask(port, "GET", target)
    assert (answer.status, json.loads(answer.msg["content"])) == (
        status, {"error": {"code": status, **error}},
    )  # fmt: skip


def test_every_field_that_is_wrong_is_listed(port: int) -> None:
    error = json.loads(ask(port, "POST", "/fields").msg["content"])["error"]
    [detail] = error.pop("details")
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    begin = "Invalid JSON payload received. "
    assert [each["description"].removeprefix(begin) for each in detail["fieldViolations"]] == [
        "is wrong", "is missing",
    ]  # fmt: skip
    assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"


def test_an_answer_has_the_headers_of_googles(port: int) -> None:
    answer = ask(port, "POST", "/echo", b"{}")
    headers = dict(answer.getheaders())
    assert headers.pop("Date").endswith(" GMT")
    assert headers == {
        "Content-Type": JSON, "Content-Length": "2", "Cache-Control": "private",
        "X-Content-Type-Options": "nosniff", "content": "{}",
    }  # fmt: skip
    assert ask(port, "GET", "/404").getheader("Connection") == "close"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        host = f"Host: 127.0.0.1:{port}\r\nConnection: close"
        connection.sendall(
            f"HEAD /echo HTTP/1.1\r\n{host}\r\nContent-Length: 3\r\n\r\n[1]".encode()
        )
        head, _, content = b"".join(iter(lambda: connection.recv(65536), b"")).partition(
            b"\r\n\r\n"
        )
    assert (b"\r\nContent-Length: 3\r\n" in head, content) == (True, b"")
    for verb in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert ask(port, verb, "/echo", b"[1]").msg["content"] == "[1]"


def test_an_exchange_that_a_fault_ends_has_no_answer(port: int) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        ask(port, "GET", "/gone")


def test_a_beta_is_served_where_a_server_takes_it() -> None:
    made = serve([Jobs()], 0, also=refuse, takes_beta=True)  # pyright: ignore[reportArgumentType]
    target = "/v1beta1/projects/p/locations/l/customJobs/NOT_FOUND"
    assert ask(made.port, "GET", target).status == 404
    made.stop(None).wait()


def test_an_error_that_is_no_call_has_no_code() -> None:
    assert rest._told(grpc.RpcError("lost")) == (grpc.StatusCode.UNKNOWN, "lost")
