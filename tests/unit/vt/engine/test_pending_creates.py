"""What pending creations mean after an `up` that ended well."""

from __future__ import annotations

from typing import Any

from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC
from vertex_training_cli.engine.pending_creates import PendingCreates, explanation, find

URN = "urn:pulumi:dev::p::pulumi-python:dynamic/vertex:CustomJob::training-"


def operation(name: str, kind: str = "creating") -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": URN + name}}


def resource(name: str, **more: Any) -> dict[str, Any]:
    return {"urn": URN + name, **more}


def test_a_creation_whose_resource_is_there_is_settled() -> None:
    found = find({"resources": [resource("a")], "pending_operations": [operation("a")]})
    assert found == PendingCreates((URN + "a",), (URN + "a",), ())
    assert found.clearable
    both = {
        "resources": [resource("0"), resource("b"), resource("a")],
        "pending_operations": [operation("b"), operation("a")],
    }
    urns = (URN + "b", URN + "a")
    assert find(both) == PendingCreates(urns, urns, ())


def test_one_that_nobody_created_again_keeps_all_of_them() -> None:
    found = find(
        {
            "resources": [resource("a"), resource("b", delete=True)],
            "pending_operations": [operation("a"), operation("b"), operation("gone")],
        }
    )
    assert found == PendingCreates((URN + "a",), (URN + "a",), (URN + "b", URN + "gone"))
    assert not found.clearable
    assert explanation(found, "dev") == (
        "a killed run was about to create training-b, training-gone, which this stack does not "
        "have now: it may exist all the same, so the note of it stays. Look (`vt jobs list --stack "
        "dev`, `vt models list`), remove what is there, then: "
        "pulumi refresh --stack dev --clear-pending-creates"
    )


def test_other_operations_and_repetitions_are_no_creations() -> None:
    found = find(
        {
            "resources": [resource("a")],
            "pending_operations": [operation("a"), operation("a"), operation("x", "deleting")],
        }
    )
    assert found == PendingCreates((URN + "a",), (URN + "a",), ())


def test_a_clean_or_empty_state_has_nothing_to_clear() -> None:
    for deployment in ({}, {"resources": None, "pending_operations": None}):
        assert not find(deployment).clearable


def test_traffic_that_came_to_nothing_is_settled_because_its_endpoint_is_emptied() -> None:
    urn = f"urn:pulumi:dev::p::x$y${ENDPOINT_TRAFFIC}::training-titanic-traffic"
    noted = {"type": "creating", "resource": {"urn": urn}}
    resources = [resource("c"), resource("a"), resource("0", delete=True)]
    found = find({"resources": resources, "pending_operations": [noted]})
    # The refresh that clears the note reads what there is: the engine refuses other targets.
    assert found == PendingCreates((urn,), (URN + "a",), ())
    assert found.clearable
