"""Requests to the storage emulator, whole, and what becomes of its answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from localgcp.errors import RefusedError, UnlistableBucketError
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.emulator import Emulator
from localgcp.gcp.plan import Settings
from localgcp.gcp.services import find
from tests.unit.localcloud.conftest import free_port

JSON = "application/json"
Answers = list[tuple[int, Any]]


class Server:
    """Gives the answers of a test, one a request, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: Answers = []
        self.asked: list[tuple[str, str, str, str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body, kind = self.rfile.read(size).decode(), self.headers["Content-Type"]
                owner.asked.append((self.command, self.path, kind, body))
                status, value = owner.answers.pop(0)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(value if isinstance(value, bytes) else json.dumps(value).encode())

            do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture(scope="module")
def listening() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def server(listening: Server) -> Iterator[Server]:
    """One that was asked nothing yet; a test takes all answers that it gives."""
    listening.asked = []
    yield listening
    assert listening.answers == []


def cloud(**environment: str) -> Cloud:
    found = find("gcp:storage/bucket:Bucket")
    assert found is not None
    return Cloud(found[0], Settings(), environment)


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1:9023", "http://127.0.0.1:9023"),
        ("http://127.0.0.1:9023/", "http://127.0.0.1:9023"),
        ("https://storage:1", "https://storage:1"),
    ],
)
def test_the_environment_names_the_emulator(host: str, base: str) -> None:
    assert Emulator.of(cloud(STORAGE_EMULATOR_HOST=host)) == Emulator(base)


@pytest.mark.parametrize("environment", [{}, {"STORAGE_EMULATOR_HOST": ""}])
def test_without_an_emulator_there_is_no_storage(environment: dict[str, str]) -> None:
    with pytest.raises(RefusedError) as refused:
        Emulator.of(cloud(**environment))
    assert str(refused.value) == (
        "STORAGE_EMULATOR_HOST is not set, so there is no local object storage. Hint: run pulumi "
        "through `vt local up` or inside `vt local shell`"
    )


Call = Callable[[Emulator], Any]
BUCKET, OBJECT = "/storage/v1/b/a%2Fb", "/storage/v1/b/a%2Fb/o/c%2Fd%20e"


@pytest.mark.parametrize(
    ("call", "request_", "answer", "returned"),
    [
        (lambda e: e.create_bucket("local p", "data", "US-WEST1"),
         ("POST", "/storage/v1/b?project=local+p", JSON,
          '{"name": "data", "location": "US-WEST1"}'), (200, {"name": "data"}), None),
        (lambda e: e.create_bucket("p", "data", "US"),
         ("POST", "/storage/v1/b?project=p", JSON, '{"name": "data", "location": "US"}'),
         (409, b"taken"), None),
        (lambda e: e.has_bucket("a/b"), ("GET", BUCKET, JSON, ""), (200, {}), True),
        (lambda e: e.has_bucket("a/b"), ("GET", BUCKET, JSON, ""), (200, b""), True),
        (lambda e: e.has_bucket("a/b"), ("GET", BUCKET, JSON, ""), (404, b""), False),
        (lambda e: e.delete_bucket("a/b"), ("DELETE", BUCKET, JSON, ""), (200, b" \n"), None),
        (lambda e: e.delete_bucket("a/b"), ("DELETE", BUCKET, JSON, ""), (404, b""), None),
        (lambda e: e.object("a/b", "c/d e"), ("GET", OBJECT, JSON, ""), (200, {"size": "1"}),
         {"size": "1"}),
        (lambda e: e.object("a/b", "c/d e"), ("GET", OBJECT, JSON, ""), (404, b"x"), None),
        (lambda e: e.delete_object("a/b", "c/d e"), ("DELETE", OBJECT, JSON, ""), (204, b""),
         None),
        (lambda e: e.delete_object("a/b", "c/d e"), ("DELETE", OBJECT, JSON, ""), (404, b""),
         None),
    ],
)  # fmt: skip
def test_a_call_is_one_request(
    server: Server, call: Call, request_: tuple[str, ...], answer: Any, returned: Any
) -> None:
    server.answers = [answer]
    assert call(Emulator(server.url)) == returned
    assert server.asked == [request_]


def test_an_object_is_uploaded_with_its_metadata_in_one_request(server: Server) -> None:
    server.answers = [(200, {"generation": "7"}), (404, b"")]
    emulator = Emulator(server.url)
    metadata = {"name": "c", "contentType": "text/x"}
    assert emulator.upload("a/b", metadata, b"hi\r\n") == {"generation": "7"}
    assert emulator.upload("a/b", metadata, b"hi\r\n") is None
    boundaries = []
    for method, path, kind, body in server.asked:
        head, _, boundary = kind.partition("; boundary=")
        boundaries.append(boundary)
        assert (method, path, head) == (
            "POST", "/upload/storage/v1/b/a%2Fb/o?uploadType=multipart", "multipart/related",
        )  # fmt: skip
        assert body == (
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
            '{"name": "c", "contentType": "text/x"}\r\n'
            f"--{boundary}\r\nContent-Type: text/x\r\n\r\nhi\r\n\r\n--{boundary}--\r\n"
        )
    assert len(set(boundaries)) == 2
    assert all(boundaries)


LIST = "/storage/v1/b/a%2Fb/o?maxResults=1000"


@pytest.mark.parametrize(
    ("answers", "names", "paths"),
    [
        ([(200, {})], [], [LIST]),
        ([(200, {"items": [{"name": "x"}, {"name": "y"}]})], ["x", "y"], [LIST]),
        ([(200, {"items": [{"name": "x"}], "nextPageToken": "t/1"}),
          (200, {"items": [{"name": "y"}], "nextPageToken": ""})], ["x", "y"],
         [LIST, f"{LIST}&pageToken=t%2F1"]),
        ([(404, b""), (404, b"")], [], [LIST, BUCKET]),
    ],
)  # fmt: skip
def test_objects_are_listed_page_by_page(
    server: Server, answers: Answers, names: list[str], paths: list[str]
) -> None:
    server.answers = list(answers)
    assert list(Emulator(server.url).objects("a/b")) == names
    assert server.asked == [("GET", path, JSON, "") for path in paths]


def test_a_bucket_that_is_there_and_has_no_list_is_no_empty_one(server: Server) -> None:
    server.answers = [(404, b""), (200, {})]
    with pytest.raises(UnlistableBucketError) as raised:
        list(Emulator(server.url).objects("a/b"))
    assert raised.value.args == ("a/b",)


@pytest.mark.parametrize(
    ("call", "asked", "status", "body", "said"),
    [
        (lambda e: e.create_bucket("p", "x", "US"), "POST /storage/v1/b?project=p", 404,
         b" no \n such\tproject", "no such project"),
        (lambda e: e.has_bucket("x"), "GET /storage/v1/b/x", 409, b"\xff!", "\ufffd!"),
        (lambda e: e.object("x", "y"), "GET /storage/v1/b/x/o/y", 500, b"a" * 301, "a" * 300),
        (lambda e: list(e.objects("x")), "GET /storage/v1/b/x/o?maxResults=1000", 503, b"", ""),
        (lambda e: e.delete_object("x", "y"), "DELETE /storage/v1/b/x/o/y", 403, b"held", "held"),
    ],
)  # fmt: skip
def test_what_the_emulator_refuses_is_told_with_the_request(
    server: Server, call: Call, asked: str, status: int, body: bytes, said: str
) -> None:
    server.answers = [(status, body)]
    with pytest.raises(RefusedError) as refused:
        call(Emulator(server.url))
    assert str(refused.value) == (f"the local object storage refused {asked}: HTTP {status} {said}")


def test_an_emulator_that_does_not_listen_is_started_by_a_command() -> None:
    base = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(RefusedError) as refused:
        Emulator(base).has_bucket("x")
    assert str(refused.value) == (
        f"the local object storage at {base} does not answer ([Errno 111] Connection refused). "
        "Hint: `vt local up` starts it"
    )


def test_an_emulator_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("localgcp.gcp.emulator.TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RefusedError) as refused:
            Emulator(base).has_bucket("x")
    assert str(refused.value) == (
        f"the local object storage at {base} does not answer (timed out). "
        "Hint: `vt local up` starts it"
    )
