"""Cloud Storage at one port, whatever becomes of the emulator behind it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from tests.unit.localcloud.conftest import free_port, wait_until


class _Echo(BaseHTTPRequestHandler):
    """Answers what it was asked, as JSON; an object called by a status with that and nothing."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        asked = [self.command, self.path, self.rfile.read(size).decode(), self.headers["Host"]]
        body = json.dumps(asked).encode()
        status = int(found[1]) if (found := re.search(r"/o/(\d+)$", self.path)) else 200
        self.send_response_only(status)
        self.send_header("X-Own", "kept")
        if status == 200:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status == 200:
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST

    def log_message(self, format: str, *args: object) -> None: ...


class Emulator:
    """Notes its starts and ends; ``alive`` is what the test says."""

    def __init__(self, root: Path) -> None:
        self.root, self.port, self.running, self.refusal = root, 0, True, "a reason"
        self.calls: list[tuple[object, ...]] = []

    def start(self, port: int, public_port: int) -> None:
        self.port = port
        self.calls.append(("start", port, public_port))

    def stop(self) -> None:
        self.calls.append(("stop",))

    def alive(self) -> bool:
        return self.running

    def connection(self, timeout: float) -> HTTPConnection:
        self.calls.append(("connection", timeout))
        return HTTPConnection("127.0.0.1", self.port, timeout=10)


@pytest.fixture(scope="module")
def backend() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class Served:
    """A front before the echo, with the faults of a table."""

    def __init__(self, folder: Path, backend: int) -> None:
        self.emulator, self.table = Emulator(folder / "storage"), FaultTable(folder / "f.sqlite")
        emulator = cast(StorageEmulator, self.emulator)
        self.front, self.backend = StorageFront(emulator, self.table, lambda: backend), backend
        self.front.start(free_port())

    def send(
        self, verb: str, path: str, body: str = "", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers of an answer."""
        connection = HTTPConnection("127.0.0.1", self.front.port, timeout=10)
        try:
            connection.request(verb, path, body or None, headers)
            got = connection.getresponse()
            return got.status, got.read().decode(), dict(got.headers)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, backend: int) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("front"), backend)
    yield made
    made.front.stop()


@pytest.fixture
def served(running: Served) -> Served:
    """The one of all tests: each begins without faults, and with an emulator that runs."""
    running.table.clear()
    running.emulator.calls.clear()
    running.emulator.port, running.emulator.running = running.backend, True
    return running


def test_an_answer_is_cut_in_its_middle_by_one_kind_alone(served: Served) -> None:
    path = "/storage/v1/b/x/o/a"
    whole = json.dumps(["GET", path, "", f"127.0.0.1:{served.front.port}"])
    served.table.add(Fault.parse(service="storage", kind="delay", seconds=0))
    assert served.send("GET", path)[1] == whole
    served.table.add(Fault.parse(service="storage", kind="truncate"))
    with pytest.raises(IncompleteRead) as cut:
        served.send("GET", path)
    assert cut.value.partial.decode() == whole[: len(whole) // 2]


def test_a_request_whose_end_is_unknown_ends_its_connection(served: Served) -> None:
    lines = ("POST /storage/v1/b HTTP/1.1", f"Host: localhost:{served.front.port}")
    with socket.create_connection(("127.0.0.1", served.front.port), timeout=5) as connection:
        connection.sendall("\r\n".join((*lines, "Content-Length: x", "", "")).encode())
        assert connection.recv(1) == b""


def test_an_emulator_that_ended_is_started_at_its_ports_again(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.front.reconcile()
    assert served.emulator.calls == []
    served.emulator.running = False
    served.front.reconcile()
    assert served.emulator.calls == [("stop",), ("start", served.backend, served.front.port)]
    told = "the object storage emulator ended; restarting the emulator\n"
    assert capsys.readouterr().out == told


def test_the_end_lets_go_of_a_call_without_an_answer(tmp_path: Path, backend: int) -> None:
    own = Served(tmp_path, backend)
    fault = own.table.add(Fault.parse(service="storage", kind="drop"))
    head = f"GET /storage/v1/b/x HTTP/1.1\r\nHost: localhost:{own.front.port}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", own.front.port), timeout=5) as connection:
        connection.sendall(head.encode())
        wait_until(lambda: own.table.get(fault).fired == 1)
        own.front.stop()
        assert connection.recv(1) == b""
