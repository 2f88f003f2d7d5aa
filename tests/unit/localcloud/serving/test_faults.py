"""Faults of operations, and of the calls that begin them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from tests.unit.localcloud.conftest import wait_until
from tests.unit.localcloud.serving.conftest import World


def add(world: World, service: str, kind: str, method: str, **more: Any) -> int:
    fault = Fault.parse(service=service, kind=kind, method=method, **more)
    return FaultTable(world.home.faults).add(fault)


def test_an_operation_is_done_and_says_that_it_failed(world: World) -> None:
    endpoint, model = world.endpoint(), world.upload()
    add(world, "operations", "error", "DeployModel", code="UNAVAILABLE", when="after")
    with pytest.raises(exceptions.ServiceUnavailable):
        world.deploy(endpoint, model, "1", {"0": 100})
    assert world.split(endpoint) == {"1": 100}
    with pytest.raises(exceptions.AlreadyExists):
        world.deploy(endpoint, model, "1")


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
