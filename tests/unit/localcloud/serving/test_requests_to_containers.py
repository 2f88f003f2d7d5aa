"""A request goes to a DeployedModel by its share, and its container's answer is passed on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.api import httpbody_pb2
from google.cloud import aiplatform_v1 as vertex
from google.protobuf import json_format

from localgcp.errors import ApiError, ContainerDownError
from localgcp.runner.joblog import JobLog
from localgcp.serving import service as services
from localgcp.serving.replicas import Answer, Replica, Timing
from localgcp.serving.service import PredictionService

NAME = "projects/1/locations/us-central1/endpoints/77"


class Container:
    """One replica: answers, or raises, what the test says."""

    def __init__(self) -> None:
        self.healthy = True
        self.asked: list[tuple[Any, ...]] = []
        self.answer: Answer | Exception = Answer(200, "application/json", b'{"predictions": [1]}')

    def ask(self, verb: str, route: str, body: bytes, kind: str, *, seconds: float) -> Answer:
        self.asked.append((verb, route, body, kind, seconds))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Deployed:
    """A DeployedModel with its containers."""

    predict_route = "/predict"

    def __init__(self, id_: str, *containers: Container) -> None:
        self.deployed = {"id": id_, "model": f"models/{id_}", "modelVersionId": "3"}
        self.version, self.closed = {"displayName": "m"}, False
        self.containers = containers

    @contextmanager
    def replica(self) -> Iterator[Container | None]:
        yield next((each for each in self.containers if each.healthy), None)


class World:
    """An endpoint with a split over DeployedModels; ``picked`` are those that chance chooses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.container = Container()
        self.deployed: dict[str, Deployed] = {"1": Deployed("1", self.container)}
        self.endpoint: dict[str, Any] = {"name": NAME, "trafficSplit": {"1": 100}}
        self.later: dict[str, Any] | None = None
        self.drawn: list[tuple[list[str], list[int]]] = []
        self.picked: list[str] = []
        endpoints = SimpleNamespace(find=self.find, table_of=lambda _: self)
        deployments = SimpleNamespace(get=lambda _name, id_: self.deployed.get(id_))
        self.service = PredictionService(cast(Any, endpoints), cast(Any, deployments))
        monkeypatch.setattr(services.random, "choices", self.choose)

    def choose(self, ids: list[str], shares: list[int]) -> list[str]:
        self.drawn.append((ids, shares))
        return [self.picked.pop(0) if self.picked else ids[0]]

    def find(self, _collection: Any, name: str, _context: Any) -> dict[str, Any]:
        assert name == NAME
        return self.endpoint

    def get(self, name: str) -> dict[str, Any] | None:
        assert name == NAME
        return self.later or self.endpoint

    def predict(self, *instances: Any, **more: Any) -> Any:
        request = vertex.PredictRequest()
        sent = {"endpoint": NAME, "instances": list(instances), **more}
        json_format.ParseDict(sent, vertex.PredictRequest.pb(request))
        return self.service.predict(request, None)

    def raw(self, data: bytes = b"x", kind: str = "text/csv") -> Any:
        body = httpbody_pb2.HttpBody(data=data, content_type=kind)
        request = vertex.RawPredictRequest(endpoint=NAME, http_body=body)
        return self.service.raw_predict(request, None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def refused(call: Callable[..., Any], *args: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args)
    return error.value.code.name, error.value.message


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "INVALID_ARGUMENT"), (404, "NOT_FOUND"), (418, "FAILED_PRECONDITION"),
     (500, "INTERNAL"), (599, "INTERNAL"), (503, "UNAVAILABLE"), (201, "FAILED_PRECONDITION")],
)  # fmt: skip
def test_a_status_of_the_container_is_passed_on(world: World, status: int, code: str) -> None:
    world.container.answer = Answer(status, "text/plain", b"no\0\xff" + b"x" * 3000)
    text = "no\0\ufffd" + "x" * 3000
    expected = f"{status} from the container: " + text[:2000].replace("\0", "")
    assert refused(world.raw) == (code, expected)


@pytest.mark.parametrize(
    ("own", "most", "words", "seconds"),
    [(False, 1_500_000, "1.5MB", 60.0), (True, 10_000_000, "10MB", 300.0)],
)
def test_requests_and_answers_have_a_size(
    world: World, own: bool, most: int, words: str, seconds: float
) -> None:
    world.endpoint["dedicatedEndpointEnabled"] = own
    assert refused(world.raw, b"x" * (most + 1)) == (
        "INVALID_ARGUMENT", f"The request size exceeds {words} limit.",
    )  # fmt: skip
    world.container.answer = Answer(200, "text/plain", b"x" * most)
    assert len(world.raw(b"x" * most).data) == most
    assert world.container.asked[0][4] == seconds
    world.container.answer = Answer(200, "text/plain", b"x" * (most + 1))
    assert refused(world.raw) == (
        "FAILED_PRECONDITION", f"The response size exceeds {words} limit.",
    )  # fmt: skip


def test_a_container_that_is_down_gets_no_more_and_another_answers(world: World) -> None:
    other = Container()
    world.deployed["1"] = Deployed("1", world.container, other)
    world.container.answer = ContainerDownError("refused")
    assert list(world.predict().predictions) == [1]
    assert (world.container.healthy, len(other.asked)) == (False, 1)
    other.healthy = False
    text = "DeployedModel 1 has no healthy replica."
    assert refused(world.predict) == ("UNAVAILABLE", text)


def test_what_was_undeployed_a_moment_ago_is_another_ones_by_now(world: World) -> None:
    world.deployed["1"].closed = True
    world.container.healthy = False
    world.deployed["2"] = Deployed("2", Container())
    world.later = {"name": NAME, "trafficSplit": {"2": 100}}
    assert world.predict().deployed_model_id == "2"
    del world.deployed["1"]
    assert world.predict().deployed_model_id == "2"
    world.later = None
    assert refused(world.predict) == ("UNAVAILABLE", f"{NAME} has no containers.")


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        kind = self.headers.get("Content-Type", "none")
        status = 500 if self.path == "/bad" else 200
        self.send_response(status)
        if self.path == "/typed":
            self.send_header("Content-Type", "text/x")
        self.end_headers()
        self.wfile.write(f"{self.command} {self.path} {kind} ".encode() + body)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """A replica that was not started, at the port of an echo."""
    server = HTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made = Replica(
        cast(Any, None), lambda: 0, health_route="/h", work=tmp_path, log=JobLog(tmp_path / "log"),
        notes=tmp_path, account="", timing=Timing(),
    )  # fmt: skip
    made.port = server.server_address[1]
    yield made
    server.shutdown()
    server.server_close()


def test_the_times_are_the_services() -> None:
    assert Timing() == Timing(health=10.0, tries=3, startup=0.1, restart=2.0, drain=60.0)
    times = Timing()
    assert (times.health, times.tries, times.startup, times.restart, times.drain) == (
        10.0, 3, 0.1, 2.0, 60.0,
    )  # fmt: skip
