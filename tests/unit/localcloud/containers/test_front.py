"""The registry at one port: what is passed on, what is refused, and what is told of a full disk."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from localgcp.containers import registry
from localgcp.containers.front import REPOSITORY, RegistryFront
from localgcp.containers.registry import Registry
from localgcp.errors import LocalCloudError
from localgcp.inventory.store import Store
from tests.unit.localcloud.conftest import free_port

IMAGE = "/v2/local-a/training/titanic"
TAGGED = "sha256:" + hashlib.sha256(b"tagged").hexdigest()


#: (verb, path, Accept) of each request that reached the registry.
asked: list[tuple[str, str, str | None]] = []


class _Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked; paths with ``fail``, ``new`` and ``empty`` by status."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        while self.headers.get("Transfer-Encoding") and (line := self.rfile.readline().strip()):
            body += self.rfile.read(int(line, 16))
            self.rfile.readline()
            if line == b"0":
                break
        asked.append((self.command, self.path, self.headers.get("Accept")))
        by_path = {"fail": 500, "new": 404, "empty": 204, "stream": 200}
        status = next((by_path[part] for part in by_path if part in self.path), 200)
        headers = {name: self.headers.get(name) for name in ("Host", "Accept", "X-Own", "TE")}
        answer = json.dumps([self.command, self.path, body.decode(), headers]).encode()
        self.send_response_only(status)
        self.send_header("Docker-Content-Digest", TAGGED)
        self.send_header("Keep-Alive", "timeout=5")
        if "stream" in self.path:
            self.close_connection = True
        elif status != 204:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(answer)

    do_PUT = do_POST = do_HEAD = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None: ...

    def address_string(self) -> str:
        return "unix"


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class FakeRegistry:
    """A registry whose process is a thread of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running, self.full = True, False
        self.fails: Exception | None = None
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")
        if self.fails:
            raise self.fails

    def alive(self) -> bool:
        return self.running

    def is_full(self) -> bool:
        return self.full

    def stop(self) -> None:
        self.calls.append("stop")


class Served:
    """The front of a fake registry, and requests to it."""

    def __init__(self, folder: Path) -> None:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket is short
        try:
            self.backend = _UnixServer("registry.sock", _Echo)
        finally:
            os.chdir(here)
        threading.Thread(target=self.backend.serve_forever, args=(0.01,), daemon=True).start()
        self.registry, self.store = FakeRegistry(folder), Store(folder / "cloud.sqlite")
        for name, immutable in (("training", False), ("fixed", True)):
            inputs = {"repositoryId": name, "dockerConfig": {"immutableTags": immutable}}
            self.store.put(REPOSITORY, f"local-a/{name}", "local-a", inputs, {})
        registry = cast(Registry, self.registry)
        self.front = RegistryFront(lambda: registry, self.store, free_port)
        self.front.start()

    def close(self) -> None:
        self.front.stop()
        self.backend.shutdown()
        self.backend.server_close()

    def send(self, verb: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, Any]:
        """Status, body and headers of an answer."""
        connection = HTTPConnection("127.0.0.1", self.front.port, timeout=20)
        try:
            chunked = "Transfer_Encoding" in headers
            named = {name.replace("_", "-"): text for name, text in headers.items()}
            connection.request(verb, path, body, named, encode_chunked=chunked)
            got = connection.getresponse()
            return got.status, got.read().decode(), got.headers
        finally:
            connection.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("registry"))
    yield made
    made.close()


@pytest.fixture
def served(running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(registry, "has_stand_in", lambda: False)
    running.registry.full, running.registry.running = False, True
    running.registry.fails = None
    running.registry.calls.clear()
    asked.clear()
    return running


def refusal(text: str) -> tuple[str, str]:
    [error] = json.loads(text)["errors"]
    assert error["detail"] == {}
    return error["code"], error["message"].removeprefix("local cloud: ")


def head(headers: Any) -> list[tuple[str, str]]:
    """Of an answer, without what the registry itself sends."""
    return [(name, text) for name, text in headers.items() if name != "Docker-Content-Digest"]


def test_request_is_passed_on_with_body_and_headers(served: Served) -> None:
    path = f"{IMAGE}/blobs/uploads/1?_state=x"
    status, text, headers = served.send("PUT", path, b"layer", X_Own="1", TE="trailers")
    host = f"127.0.0.1:{served.front.port}"
    assert (status, json.loads(text)) == (
        200,
        ["PUT", path, "layer", {"Host": host, "Accept": None, "X-Own": "1", "TE": None}],
    )
    assert headers["Docker-Content-Digest"] == TAGGED
    assert headers["Keep-Alive"] is None
    assert headers["Content-Length"] == str(len(text))


def test_body_in_chunks_is_passed_on(served: Served) -> None:
    path = f"{IMAGE}/blobs/uploads/1"
    parts = iter([b"one", b"two"])
    _, text, _ = served.send("PATCH", path, parts, Transfer_Encoding="chunked")
    assert json.loads(text)[2] == "onetwo"


def test_answer_to_head_has_no_body(served: Served) -> None:
    status, text, headers = served.send("HEAD", f"{IMAGE}/manifests/v1")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 0
    assert served.send("GET", "/v2/")[0] == 200
    status, text, headers = served.send("HEAD", "/v2/local-a/none/x/manifests/v1")
    assert (status, text) == (404, "")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize("name", ["Origin", "Host"])
def test_request_of_a_web_page_is_refused(served: Served, name: str) -> None:
    status, text, _ = served.send("GET", f"{IMAGE}/manifests/v1", **{name: "http://evil.example"})
    hosts = ", ".join(f"{host}:{served.front.port}" for host in ("127.0.0.1", "localhost", "[::1]"))
    why = {
        "Origin": "requests from web pages are refused.",
        "Host": f"the Host header of a request must be one of {hosts}.",
    }
    assert (status, refusal(text)) == (403, ("DENIED", why[name]))
    assert asked == []


def test_request_of_unknown_length_ends_its_connection(served: Served) -> None:
    lines = (f"PUT {IMAGE}/blobs/uploads/1 HTTP/1.1", f"Host: localhost:{served.front.port}")
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=5) as connection:
        connection.sendall("\r\n".join((*lines, "Content-Length: x", "", "")).encode())
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    ("verb", "path", "status", "code", "text"),
    [
        ("GET", "/v1/x", 404, "NAME_UNKNOWN", "the registry API has no path '/v1/x'."),
        ("GET", "/v2/acme/r/x/manifests/v1", 403, "DENIED",
         "the local cloud has no project acme: its projects begin with local-."),
        ("GET", "/v2/local-a/none/x/manifests/v1", 404, "NAME_UNKNOWN",
         "repository none of project local-a does not exist. `pulumi up` creates it."),
        ("OPTIONS", "/v2/", 405, "UNSUPPORTED", "OPTIONS is not a method of the registry API."),
        ("GET", f"{IMAGE}/manifests/a%2fb", 400, "MANIFEST_INVALID",
         "'a%2fb' is neither a tag nor a digest."),
    ],
)  # fmt: skip
def test_address_of_no_image_is_refused(
    served: Served, verb: str, path: str, status: int, code: str, text: str
) -> None:
    got, body, headers = served.send(verb, path)
    assert (got, refusal(body)) == (status, (code, text))
    size = ("Content-Length", str(len(body)))
    assert head(headers) == [("Content-Type", "application/json"), size, ("Connection", "close")]


FIXED = "/v2/local-a/fixed/titanic/manifests"


def test_digest_of_an_immutable_tag_is_requested_in_all_forms(served: Served) -> None:
    served.send("PUT", f"{FIXED}/v1", b"tagged", Accept="x")
    oci, docker = "application/vnd.oci.image", "application/vnd.docker.distribution.manifest"
    forms = (f"{oci}.index.v1+json", f"{oci}.manifest.v1+json", f"{docker}.list.v2+json")
    every = ", ".join((*forms, f"{docker}.v2+json"))
    assert asked == [("HEAD", f"{FIXED}/v1", every), ("PUT", f"{FIXED}/v1", "x")]


def test_immutable_tag_is_not_deleted(served: Served) -> None:
    status, text, _ = served.send("DELETE", f"{FIXED}/v1")
    deleted = "tag v1 is immutable and cannot be deleted."
    assert (status, refusal(text)) == (400, ("MANIFEST_INVALID", deleted))
    assert served.send("DELETE", f"{FIXED}/{TAGGED}")[0] == 200
    assert asked == [("DELETE", f"{FIXED}/{TAGGED}", None)]


@pytest.mark.parametrize(("size", "status"), [(4 << 20, 200), ((4 << 20) + 1, 413)])
def test_manifest_has_four_mebibytes_at_most(served: Served, size: int, status: int) -> None:
    got, body, _ = served.send("PUT", f"{IMAGE}/manifests/v1", b"x" * size)
    assert got == status
    if status == 413:
        assert refusal(body) == ("MANIFEST_INVALID", "the manifest is larger than 4 MiB.")


def test_full_disk_is_reported_instead_of_an_error_of_the_registry(served: Served) -> None:
    path = f"{IMAGE}/blobs/uploads/fail"
    status, text, _ = served.send("POST", path)
    assert (status, json.loads(text)[0]) == (500, "POST")
    served.registry.full = True
    status, text, _ = served.send("POST", path)
    assert (status, refusal(text)) == (
        507, ("UNKNOWN", "no space left on the disk of the registry."),
    )  # fmt: skip
    assert served.send("POST", f"{IMAGE}/blobs/uploads/1")[0] == 200


def test_silent_registry_is_reported(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.registry, "folder", tmp_path)
    status, text, _ = served.send("GET", f"{IMAGE}/manifests/v1")
    assert (status, refusal(text)) == (
        502,
        (
            "MANIFEST_INVALID",
            "the registry did not answer: FileNotFoundError: [Errno 2] No such file or directory",
        ),
    )


def test_registry_that_ended_is_started_again(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.front.reconcile()
    assert served.registry.calls == []
    served.registry.running = False
    served.front.reconcile()
    assert served.registry.calls == ["stop", "start"]
    assert capsys.readouterr().out == "the container registry ended; restarting it\n"


def test_nothing_is_served_without_a_program_that_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = FakeRegistry(tmp_path)
    found: list[Registry | None] = [None, cast(Registry, registry)]
    store = Store(tmp_path / "cloud.sqlite")
    front = RegistryFront(lambda: found.pop(0), store, lambda: pytest.fail("a port"))
    front.start()
    front.stop()
    registry.fails = LocalCloudError("no.", "see.")
    front.reconcile()
    front.reconcile()
    assert (front.port, registry.calls) == (0, ["start"])
    assert capsys.readouterr().out == "no container registry: no. Hint: see.\n"
    front.stop()
    assert registry.calls == ["start", "stop"]
