"""What is deployed: one operation at a time, nothing without health, nothing lost on the way."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from google.api_core import exceptions
from google.protobuf import duration_pb2

from localgcp.home import Home
from tests.unit.localcloud.conftest import OFTEN, wait_until
from tests.unit.localcloud.serving.conftest import (
    NUMBERED,
    PLACE,
    TRAINER,
    World,
    container,
)

ENDPOINT_NAME = f"{NUMBERED}/endpoints/77"


def deployed(world: World) -> list[str]:
    return [each.id for each in world.endpoints.get_endpoint(name=ENDPOINT_NAME).deployed_models]


def processes(home: Home) -> list[psutil.Process]:
    """Containers of models that run."""
    found: list[psutil.Process] = []
    for each in psutil.process_iter():
        try:
            if each.environ().get("HOME", "").startswith(f"{home.serving}/"):
                found.append(each)
        except psutil.Error:
            continue
    return found


def log(home: Home, id_: str, index: int = 0) -> str:
    return (home.serving / "logs" / "77" / f"{id_}-{index}.log").read_text()


class Stream:
    """Requests one after the other, in threads, until it is left; notes who answered."""

    def __init__(self, world: World, threads: int = 4, pause: float = 0.02) -> None:
        self.answers: list[str] = []
        self.errors: list[Exception] = []
        self._over = threading.Event()
        self._world, self._pause = world, pause
        self._threads = [threading.Thread(target=self._send) for _ in range(threads)]

    def _send(self) -> None:
        while not self._over.wait(self._pause):
            try:
                answer = self._world.predict(ENDPOINT_NAME, 1)
                self.answers.append(answer.deployed_model_id)
            except Exception as error:
                self.errors.append(error)

    def __enter__(self) -> Stream:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()


@pytest.fixture
def pair(world: World) -> World:
    """An endpoint with two versions: 1 has all traffic."""
    world.endpoint()
    world.deploy(ENDPOINT_NAME, world.upload(slope=2), "1", {"0": 100})
    world.deploy(ENDPOINT_NAME, world.upload(slope=3), "2")
    return world


def test_requests_are_divided_by_the_split(pair: World) -> None:
    pair.set_split(ENDPOINT_NAME, {"1": 80, "2": 20})
    seen = Counter(pair.predict(ENDPOINT_NAME, 1).deployed_model_id for _ in range(300))
    assert 200 < seen["1"] < 280  # 240 expected, 5.8 standard deviations
    assert seen["1"] + seen["2"] == 300


def test_a_split_is_refused_unless_it_sums_to_100_over_what_is_deployed(pair: World) -> None:
    for split, text in (
        ({"1": 60, "2": 30}, "must sum to 100"),
        ({"1": 150, "2": -50}, "must sum to 100"),
        ({"1": 50, "9": 50}, "names 9"),
        ({"1": 50, "0": 50}, "names 0"),
    ):
        with pytest.raises(exceptions.InvalidArgument, match=text):
            pair.set_split(ENDPOINT_NAME, split)
    assert pair.split(ENDPOINT_NAME) == {"1": 100}
    pair.set_split(ENDPOINT_NAME, {})
    with pytest.raises(exceptions.FailedPrecondition, match="traffic_split"):
        pair.predict(ENDPOINT_NAME, 1)


def test_an_endpoint_with_something_deployed_is_not_deleted(pair: World) -> None:
    remove: Any = pair.endpoints.delete_endpoint
    with pytest.raises(exceptions.FailedPrecondition, match="has deployed models: 1, 2"):
        remove(name=ENDPOINT_NAME)
    pair.undeploy(ENDPOINT_NAME, "2")
    pair.undeploy(ENDPOINT_NAME, "1")
    remove(name=ENDPOINT_NAME).result(timeout=60, polling=OFTEN)
    with pytest.raises(exceptions.NotFound):
        pair.endpoints.get_endpoint(name=ENDPOINT_NAME)


def test_a_version_that_is_never_healthy_is_never_there(pair: World) -> None:
    short = pair.upload("unhealthy", slope=6, container_spec=_short("unhealthy"))
    with Stream(pair) as stream, pytest.raises(exceptions.FailedPrecondition, match="never became"):
        pair.deploy(ENDPOINT_NAME, short, "3", {"0": 90, "1": 10})
    assert not stream.errors
    assert set(stream.answers) == {"1"}
    assert (deployed(pair), pair.split(ENDPOINT_NAME)) == (["1", "2"], {"1": 100})
    assert len(processes(pair.home)) == 2


def _short(*words: str) -> dict[str, Any]:
    return container(*words, deployment_timeout=duration_pb2.Duration(seconds=1))


def test_an_image_without_a_command_fails_the_deployment_with_a_hint(world: World) -> None:
    endpoint = world.endpoint()
    spec = {"image_uri": _short()["image_uri"]}
    with pytest.raises(exceptions.FailedPrecondition, match=r"Give containerSpec\.command"):
        world.deploy(endpoint, world.upload(container_spec=spec), "1")


def test_a_replica_that_turns_unhealthy_gets_no_requests_until_it_is_well(
    world: World, tmp_path: Path
) -> None:
    well = tmp_path / "well"
    well.touch()
    endpoint, model = world.endpoint(), world.upload("while", str(well))
    world.deploy(endpoint, model, "1", {"0": 100})
    well.unlink()
    assert world.predict(endpoint, 1).predictions  # one failure is none
    wait_until(lambda: "unhealthy" in log(world.home, "1"))
    with pytest.raises(exceptions.ServiceUnavailable, match="no healthy replica"):
        world.predict(endpoint, 1)
    assert len(processes(world.home)) == 1  # it was not restarted
    well.touch()
    wait_until(lambda: log(world.home, "1").count("] healthy") == 2)
    assert world.predict(endpoint, 1).predictions


def test_a_model_of_elsewhere_an_id_in_use_and_an_unknown_account_are_refused(
    pair: World,
) -> None:
    model = f"{PLACE}/models/doubler@1"
    with pytest.raises(exceptions.AlreadyExists):
        pair.begin_deploy(ENDPOINT_NAME, model, "1")
    with pytest.raises(exceptions.NotFound):
        pair.begin_deploy(ENDPOINT_NAME, f"{PLACE}/models/other", "3")
    with pytest.raises(exceptions.NotFound):
        pair.begin_deploy(ENDPOINT_NAME, model.replace("central1", "east1"), "3")
    with pytest.raises(exceptions.PermissionDenied):
        pair.begin_deploy(ENDPOINT_NAME, model.replace("local-training", "acme"), "3")
    with pytest.raises(exceptions.PermissionDenied, match="act as service_account"):
        pair.begin_deploy(ENDPOINT_NAME, model, "3", service_account=f"no-{TRAINER}")


def test_a_dedicated_endpoint_has_a_name_of_its_own(world: World) -> None:
    endpoint = world.endpoint(dedicated_endpoint_enabled=True)
    number = NUMBERED.split("/")[1]
    found = world.endpoints.get_endpoint(name=endpoint)
    assert found.dedicated_endpoint_dns == f"77.us-central1-{number}.prediction.vertexai.goog"
    for wrong in ("0", "01", "12345678901", "Upper"):
        with pytest.raises(exceptions.InvalidArgument, match="Invalid endpoint_id"):
            world.endpoint(wrong)
