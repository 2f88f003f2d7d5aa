"""Requests to the storage emulator, whole, and what becomes of its answers."""

from __future__ import annotations

import json
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
