"""What is deployed: one operation at a time, nothing without health, nothing lost on the way."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from google.api_core import exceptions
from google.longrunning import operations_pb2
from google.protobuf import duration_pb2

from localgcp.home import Home
from localgcp.inventory.store import ENDPOINT
from tests.unit.localcloud.conftest import OFTEN, wait_until
from tests.unit.localcloud.serving.conftest import (
    MACHINE,
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


def test_a_deployment_without_a_split_leaves_it(pair: World) -> None:
    assert pair.split(ENDPOINT_NAME) == {"1": 100}
    assert deployed(pair) == ["1", "2"]
    found = pair.endpoints.get_endpoint(name=ENDPOINT_NAME).deployed_models[1]
    assert (found.model, found.model_version_id) == (f"{NUMBERED}/models/doubler", "2")
    assert found.display_name == "doubler"


def test_requests_are_divided_by_the_split(pair: World) -> None:
    pair.set_split(ENDPOINT_NAME, {"1": 80, "2": 20})
    seen = Counter(pair.predict(ENDPOINT_NAME, 1).deployed_model_id for _ in range(300))
    assert 200 < seen["1"] < 280  # 240 expected, 5.8 standard deviations
    assert seen["1"] + seen["2"] == 300


def test_no_request_is_lost_while_the_split_changes_and_the_old_version_leaves(
    pair: World,
) -> None:
    pair.upload("slow", "0.3", slope=4)
    pair.deploy(ENDPOINT_NAME, f"{PLACE}/models/doubler@3", "3")
    with Stream(pair) as stream:
        for share in (10, 50, 100):
            split = {"1": 100 - share, "3": share}
            assert dict(pair.set_split(ENDPOINT_NAME, split).traffic_split) == split
            time.sleep(0.3)
        pair.undeploy(ENDPOINT_NAME, "1")
        pair.set_split(ENDPOINT_NAME, {"2": 100})
        pair.undeploy(ENDPOINT_NAME, "3")  # it has requests that take 0.3 s
    assert not stream.errors
    assert {"1", "3"} <= set(stream.answers)
    assert deployed(pair) == ["2"]


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


def test_a_version_with_traffic_stays_unless_the_request_takes_it_away(pair: World) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="100 percent of the traffic"):
        pair.undeploy(ENDPOINT_NAME, "1")
    with pytest.raises(exceptions.FailedPrecondition, match="50 percent"):
        pair.undeploy(ENDPOINT_NAME, "1", {"1": 50, "2": 50})
    pair.undeploy(ENDPOINT_NAME, "1", {"2": 100})
    assert pair.split(ENDPOINT_NAME) == {"2": 100}
    assert len(processes(pair.home)) == 1
    pair.undeploy(ENDPOINT_NAME, "2")  # of the last one, the split ends up empty
    assert (pair.split(ENDPOINT_NAME), deployed(pair)) == ({}, [])
    assert not processes(pair.home)


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


def test_a_container_that_ends_fails_the_deployment_at_once(pair: World) -> None:
    model = pair.upload("ends", "3", slope=5)
    with pytest.raises(exceptions.FailedPrecondition, match=r"exited unexpectedly.* code 3"):
        pair.deploy(ENDPOINT_NAME, model, "3")
    assert deployed(pair) == ["1", "2"]


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


def test_a_replica_that_dies_is_started_again_and_the_others_serve_on(world: World) -> None:
    endpoint, model = world.endpoint(), world.upload()
    both = {"min_replica_count": 2, "max_replica_count": 3}
    world.deploy(endpoint, model, "1", {"0": 100}, resources=both)
    first, second = processes(world.home)
    assert first.environ()["AIP_HTTP_PORT"] != second.environ()["AIP_HTTP_PORT"]
    first.kill()
    first.wait()
    for _ in range(20):
        assert world.predict(endpoint, 1).predictions
    wait_until(lambda: len(processes(world.home)) == 2)
    second.kill()
    second.wait()
    wait_until(lambda: len(processes(world.home)) == 2)
    wait_until(lambda: log(world.home, "1").count("] healthy") == 2)
    assert world.predict(endpoint, 1).predictions


def test_a_number_of_replicas_changes_without_another_deployment(pair: World) -> None:
    def mutate(least: int, most: int) -> None:
        resources = {"machine_spec": MACHINE, "min_replica_count": least, "max_replica_count": most}
        body = {"id": "1", "dedicated_resources": resources}
        paths = [f"dedicated_resources.{each}_replica_count" for each in ("min", "max")]
        request = {"endpoint": ENDPOINT_NAME, "deployed_model": body}
        request["update_mask"] = {"paths": paths}
        made: Any = pair.endpoints.mutate_deployed_model(request)
        made.result(timeout=60, polling=OFTEN)

    with Stream(pair) as stream:
        mutate(3, 4)
        assert len(processes(pair.home)) == 4
        mutate(1, 1)
        assert len(processes(pair.home)) == 2
    assert not stream.errors
    with pytest.raises(exceptions.InvalidArgument, match="min_replica_count"):
        mutate(0, 1)
    with pytest.raises(exceptions.InvalidArgument, match="max_replica_count"):
        mutate(3, 2)
    found = pair.endpoints.get_endpoint(name=ENDPOINT_NAME).deployed_models[0]
    assert found.dedicated_resources.max_replica_count == 1


@pytest.mark.parametrize(
    ("id_", "more", "text"),
    [
        ("x1", {}, "1 to 10 digits"),
        ("12345678901", {}, "1 to 10 digits"),
        ("3", {"resources": {"min_replica_count": 0}}, "min_replica_count"),
        ("3", {"resources": {"min_replica_count": 2, "max_replica_count": 1}}, "max_replica_count"),
        ("3", {"resources": {"machine_spec": {}}}, "machine_type"),
        ("3", {"resources": {"machine_spec": {**MACHINE, "accelerator_count": 1}}}, "accelerator"),
        ("3", {"resources": {"required_replica_count": 5}}, "required_replica_count"),
    ],
)
def test_what_cannot_be_deployed_is_refused(
    world: World, id_: str, more: dict[str, Any], text: str
) -> None:
    endpoint, model = world.endpoint(), world.upload()
    with pytest.raises(exceptions.InvalidArgument, match=text):
        world.begin_deploy(endpoint, model, id_, **more)


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


def test_an_endpoint_has_one_operation_at_a_time(world: World, tmp_path: Path) -> None:
    endpoint, model = world.endpoint(), world.upload("until", str(tmp_path / "go"))
    under_way = world.begin_deploy(endpoint, model, "1", {"0": 100})
    with pytest.raises(exceptions.FailedPrecondition, match="other operations running"):
        world.begin_deploy(endpoint, model, "1")
    with pytest.raises(exceptions.FailedPrecondition, match="other operations running"):
        world.endpoints.delete_endpoint(name=endpoint)
    (tmp_path / "go").touch()
    under_way.result(timeout=60, polling=OFTEN)


def test_an_operation_outlives_its_caller_and_the_server(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    world, go = make_world(), tmp_path / "go"
    endpoint = world.endpoint()
    model = world.upload("until", str(go))
    name = world.begin_deploy(endpoint, model, "1", {"0": 100}).operation.name
    world = make_world()  # another server over the same files; nobody waits any more
    request = operations_pb2.ListOperationsRequest(name=endpoint, filter="done=false")
    found = world.endpoints.list_operations(request)
    assert [each.name for each in found.operations] == [name]
    go.touch()
    wait_until(lambda: world.endpoints.get_operation({"name": name}).done)
    assert not world.endpoints.get_operation({"name": name}).HasField("error")
    assert (deployed(world), world.split(endpoint)) == (["1"], {"1": 100})
    world = make_world()  # what is deployed is there again
    wait_until(lambda: log(world.home, "1").count("] healthy") >= 2)
    assert list(world.predict(endpoint, 2).predictions) == [4.0]
    assert len(processes(world.home)) == 1


def test_wait_operation_returns_when_it_is_done(world: World, tmp_path: Path) -> None:
    endpoint, model = world.endpoint(), world.upload("until", str(tmp_path / "go"))
    name = world.begin_deploy(endpoint, model, "1").operation.name
    timeout = duration_pb2.Duration(nanos=200_000_000)
    short = operations_pb2.WaitOperationRequest(name=name, timeout=timeout)
    wait = world.channel.unary_unary(
        "/google.longrunning.Operations/WaitOperation",
        operations_pb2.WaitOperationRequest.SerializeToString,
        operations_pb2.Operation.FromString,
    )
    assert not wait(short).done
    threading.Timer(0.3, (tmp_path / "go").touch).start()
    assert wait(operations_pb2.WaitOperationRequest(name=name)).done


def test_containers_end_with_the_server(make_world: Callable[..., World]) -> None:
    world = make_world()
    endpoint = world.endpoint()
    world.deploy(endpoint, world.upload(), "1", {"0": 100})
    assert len(processes(world.home)) == 1
    world.serving.stop()
    assert not processes(world.home)


def test_the_server_stops_at_once_though_a_container_has_not_answered_yet(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    endpoint = world.endpoint()
    world.deploy(endpoint, world.upload("slow", "30"), "1", {"0": 100})
    errors: list[Exception] = []

    def ask() -> None:
        try:
            world.predict(endpoint, 1)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: "asked" in log(world.home, "1"))
    name = world.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="1").operation.name
    began = time.monotonic()
    world.serving.stop()
    thread.join()
    assert time.monotonic() - began < 25  # of the 30 that its answer takes
    assert len(errors) == 1
    world = make_world()
    wait_until(lambda: world.endpoints.get_operation({"name": name}).done)
    assert (deployed(world), processes(world.home)) == ([], [])


def test_the_plugins_resource_has_what_is_deployed(pair: World) -> None:
    (found,) = pair.store.list(ENDPOINT)
    assert found.id == f"{PLACE}/endpoints/77"
    assert found.outputs["trafficSplit"] == '{"1": 100}'
    listed = [(e["id"], e["modelVersionId"]) for e in found.outputs["deployedModels"]]
    assert listed == [("1", "1"), ("2", "2")]


def test_a_dedicated_endpoint_has_a_name_of_its_own(world: World) -> None:
    endpoint = world.endpoint(dedicated_endpoint_enabled=True)
    number = NUMBERED.split("/")[1]
    found = world.endpoints.get_endpoint(name=endpoint)
    assert found.dedicated_endpoint_dns == f"77.us-central1-{number}.prediction.vertexai.goog"
    for wrong in ("0", "01", "12345678901", "Upper"):
        with pytest.raises(exceptions.InvalidArgument, match="Invalid endpoint_id"):
            world.endpoint(wrong)
