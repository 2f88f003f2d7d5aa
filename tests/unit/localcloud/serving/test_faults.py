"""Faults of operations, and of the calls that begin them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from tests.unit.localcloud.conftest import wait_until
from tests.unit.localcloud.serving.conftest import PLACE, World


def add(world: World, service: str, kind: str, method: str, **more: Any) -> int:
    fault = Fault.parse(service=service, kind=kind, method=method, **more)
    return FaultTable(world.home.faults).add(fault)


def test_an_operation_takes_longer(world: World) -> None:
    add(world, "operations", "delay", "UploadModel", seconds=1)
    began = time.monotonic()
    world.upload()
    assert time.monotonic() - began > 1


def test_an_operation_fails_with_nothing_done(world: World) -> None:
    endpoint, model = world.endpoint(), world.upload()
    add(world, "operations", "error", "DeployModel", code="INTERNAL", match='"77"')
    add(world, "operations", "error", "DeployModel", code="INTERNAL", match="nothing has this")
    with pytest.raises(exceptions.InternalServerError, match="fault"):
        world.deploy(endpoint, model, "77", {"0": 100})
    assert not world.endpoints.get_endpoint(name=endpoint).deployed_models
    world.deploy(endpoint, model, "77", {"0": 100})


def test_an_operation_is_done_and_says_that_it_failed(world: World) -> None:
    endpoint, model = world.endpoint(), world.upload()
    add(world, "operations", "error", "DeployModel", code="UNAVAILABLE", when="after")
    with pytest.raises(exceptions.ServiceUnavailable):
        world.deploy(endpoint, model, "1", {"0": 100})
    assert world.split(endpoint) == {"1": 100}
    with pytest.raises(exceptions.AlreadyExists):
        world.deploy(endpoint, model, "1")


@pytest.mark.parametrize("method", ["UploadModel", "DeployModel", "UndeployModel"])
def test_an_answer_is_lost_though_the_operation_began(world: World, method: str) -> None:
    endpoint = world.endpoint()
    first, second = world.upload(), world.upload()
    world.deploy(endpoint, first, "1", {"0": 100})
    world.deploy(endpoint, second, "2")
    add(world, "models", "error", method, code="UNAVAILABLE", when="after")
    act = {
        "UploadModel": lambda: world.upload(),
        "DeployModel": lambda: world.deploy(endpoint, first, "3"),
        "UndeployModel": lambda: world.undeploy(endpoint, "2"),
    }
    with pytest.raises(exceptions.ServiceUnavailable, match="fault"):
        act[method]()

    def found() -> tuple[int, list[str]]:
        versions = list(world.models.list_model_versions(name=f"{PLACE}/models/doubler"))
        deployed = world.endpoints.get_endpoint(name=endpoint).deployed_models
        return len(versions), [each.id for each in deployed]

    expected = {
        "UploadModel": (3, ["1", "2"]),
        "DeployModel": (2, ["1", "2", "3"]),
        "UndeployModel": (2, ["1"]),
    }
    wait_until(lambda: found() == expected[method])


def test_an_operation_that_is_held_goes_on_with_the_next_server(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    endpoint, model = world.endpoint(), world.upload()
    held = add(world, "operations", "hold", "DeployModel", times=0)
    name = world.begin_deploy(endpoint, model, "1", {"0": 100}).operation.name
    faults = FaultTable(world.home.faults)
    assert faults.wait_held(held, 10) == "DeployModel before"
    world = make_world()
    faults.wait_held(held, 10)
    faults.release(held)
    wait_until(lambda: world.endpoints.get_operation({"name": name}).done)
    assert world.split(endpoint) == {"1": 100}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"service": "operations", "kind": "drop"}, "drop is no fault of operations"),
        ({"service": "models", "kind": "stale", "seconds": 1}, "stale is no fault of models"),
        ({"service": "operations", "kind": "error", "code": "503"}, "no gRPC code"),
        ({"service": "operations", "kind": "hold", "method": "GetModel"}, "has no method"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(LocalCloudError, match=text):
        Fault.parse(**given)
