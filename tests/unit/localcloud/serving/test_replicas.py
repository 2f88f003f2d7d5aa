"""One replica, without the services around it."""

from __future__ import annotations

import http.server
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.serving.replicas import Replica, Timing
from tests.unit.localcloud.conftest import wait_until

TIMING = Timing(health=1.0, startup=0.02, restart=60.0)


class _Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which another program says that all is well."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    """Starts a replica that runs Python code at a port."""
    made = list[Replica]()

    def begin(port: int, code: str) -> Replica:
        @contextmanager
        def launch(_: int) -> Iterator[Launch]:
            yield Launch([sys.executable, "-c", code], {})

        log = JobLog(tmp_path / "replica.log")
        (tmp_path / "notes").mkdir()
        replica = Replica(
            launch, lambda: port, health_route="/", work=tmp_path, log=log,
            notes=tmp_path / "notes", account="", timing=TIMING,
        )  # fmt: skip
        made.append(replica)
        replica.start()
        return replica

    yield begin
    for each in made:
        each.stop()


def test_a_container_that_ended_is_not_well_though_a_stranger_answers_at_its_port(
    start: Callable[..., Replica], taken: int
) -> None:
    replica = start(taken, "raise SystemExit(3)")
    wait_until(lambda: bool(replica.failure))
    time.sleep(0.3)  # a dozen looks
    assert not replica.healthy
    assert "exit code 3" in replica.failure
