"""The serving program as its image starts it: a process, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from titanic import portable
from titanic.data import load_split
from titanic.features import fit

from tests.fixture_project import SAMPLES as JOBS

SLOW = """\
import sys, time
from vertex_job.serving import serve

class Slow:
    def parse(self, instance):
        return instance
    def predict(self, rows):
        print("began", flush=True)
        time.sleep(rows[0])
        return rows if len(rows) < 3 else rows[:1]

sys.exit(serve(Slow))
"""


class Server:
    """A serving process; its port is free when it starts."""

    def __init__(self, folder: Path, *command: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        service = {
            "AIP_HTTP_PORT": str(self.port),
            "AIP_HEALTH_ROUTE": "/is-well",
            "AIP_PREDICT_ROUTE": "/ask",
            "AIP_STORAGE_URI": str(folder),
        }
        path = os.pathsep.join([str(JOBS), str(JOBS / "lib")])
        self.process = subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **service, "PYTHONPATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, route: str, body: Any = None) -> tuple[int, Any]:
        """Status and document of an answer; a ``bytes`` body is sent as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{route}", data)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "not healthy"
            try:
                assert self.ask("/is-well")[0] == 200
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(self.process.communicate())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, titanic_data: Path) -> Path:
    """What a run leaves, and its own predictions."""
    split = load_split(str(titanic_data / "test.npz"))
    fitted = fit(split.columns)
    weights = np.random.default_rng(1).normal(size=(1, len(fitted.feature_names)))
    made = portable.PortableModel([(weights.astype(np.float32), np.ones(1, np.float32))], fitted)
    folder = tmp_path_factory.mktemp("model")
    (folder / "model.json").write_bytes(made.dump())
    own = made.probabilities(split.columns).tolist()
    (folder / "predictions.jsonl").write_bytes(portable.predictions_jsonl(split.columns, own))
    return folder


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    running = Server(model, "-m", "titanic.serve")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def test_bad_rows_are_refused_by_their_numbers_and_the_server_goes_on(server: Server) -> None:
    good = {"passenger_class": 1, "sex": "female", "title": "Mrs", "party_size": 1}
    rows = [good, good | {"age": "old"}, *[7] * 12]
    status, told = server.ask("/ask", {"instances": rows})
    assert status == 400
    assert 'row 2: age is \\"old\\"' in told
    assert "row 3: the passenger must be an object" in told
    assert told.count("row ") == 10
    assert "3 more rows" in told
    assert server.ask("/ask", {"instances": [good]})[0] == 200
    assert server.ask("/ask", {"instances": []}) == (200, {"predictions": []})


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[]", b'{"instances": {}}'])
def test_a_body_that_is_no_request_is_refused(server: Server, body: bytes) -> None:
    status, told = server.ask("/ask", body)
    assert status == 400
    assert "JSON" in told or "instances" in told


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "no model: cannot read"), ("{}", "has format None"), ("{", "no model: Expecting")],
)
def test_wrong_model_is_reported(tmp_path: Path, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / "model.json").write_text(content)
    ended = Server(tmp_path, "-m", "titanic.serve").process
    _, errors = ended.communicate(timeout=30)
    assert ended.returncode == 1
    [line] = errors.splitlines()
    assert told in line


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path, "-c", SLOW)
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_a_request_that_runs_at_sigterm_is_answered(slow: Server) -> None:
    answers: list[tuple[int, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(slow.ask("/ask", {"instances": [1.5]})))
    asking.start()
    assert slow.process.stdout
    assert slow.process.stdout.readline() == "began\n"
    slow.process.send_signal(signal.SIGTERM)
    asking.join(20)
    assert answers == [(200, {"predictions": [1.5]})]
    assert slow.process.wait(20) in (0, -signal.SIGTERM)
    with pytest.raises(OSError, match="refused"):
        slow.ask("/is-well")


def test_health_is_answered_while_predictions_run(slow: Server) -> None:
    def ask() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):  # its server is killed
            slow.ask("/ask", {"instances": [60.0]})

    asking = threading.Thread(target=ask)
    asking.start()
    assert slow.process.stdout
    slow.process.stdout.readline()
    assert slow.ask("/is-well") == (200, {})
    assert asking.is_alive()
    slow.process.kill()
    asking.join(20)


def test_a_prediction_too_few_is_the_servers_mistake(slow: Server) -> None:
    assert slow.ask("/ask", {"instances": [0.0, 0.0, 0.0]})[0] == 500


@pytest.mark.parametrize(
    ("environ", "host"), [({}, "0.0.0.0"), ({"VERTEX_JOB_HOST": "127.0.0.1"}, "127.0.0.1")]
)
def test_it_listens_everywhere_unless_it_is_told_where(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], host: str
) -> None:
    from vertex_job import serving

    asked = dict[str, Any]()
    monkeypatch.setattr("uvicorn.run", lambda _, **given: asked.update(given))
    assert serving.serve(lambda: None, environ) == 0  # type: ignore[arg-type, return-value]
    assert asked["host"] == host
