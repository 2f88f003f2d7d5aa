"""What a request over REST asks the gRPC server beside it, and what is made of its answer."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.apis.server import serve
from localgcp.errors import (
    ApiError,
    ExchangeEndedError,
    InvalidRequestError,
    RefusedRequestError,
)
from localgcp.vertex.service import JobService

JSON = "application/json; charset=UTF-8"


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
