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
    assert found == PendingCreates((URN + "a",), ())
    assert found.clearable


def test_one_that_nobody_created_again_keeps_all_of_them() -> None:
    found = find(
        {
            "resources": [resource("a"), resource("b", delete=True)],
            "pending_operations": [operation("a"), operation("b"), operation("gone")],
        }
    )
    assert found == PendingCreates((URN + "a",), (URN + "b", URN + "gone"))
    assert not found.clearable
    told = explanation(found, "dev")
    assert "training-b, training-gone" in told
    assert "pulumi refresh --stack dev --clear-pending-creates" in told


def test_other_operations_and_repetitions_are_no_creations() -> None:
    found = find(
        {
            "resources": [resource("a")],
            "pending_operations": [operation("a"), operation("a"), operation("x", "deleting")],
        }
    )
    assert found == PendingCreates((URN + "a",), ())


def test_a_clean_or_empty_state_has_nothing_to_clear() -> None:
    for deployment in ({}, {"resources": None, "pending_operations": None}):
        assert not find(deployment).clearable


def test_what_a_killed_run_deployed_to_an_endpoint_is_told_with_what_takes_it_away() -> None:
    urn = f"urn:pulumi:dev::p::x$y${ENDPOINT_TRAFFIC}::training-titanic-traffic"
    noted = {"type": "creating", "resource": {"urn": urn}}
    told = explanation(find({"pending_operations": [noted]}), "dev")
    assert "`vt endpoints list --stack dev`" in told
    assert "gcloud ai endpoints undeploy-model ENDPOINT --deployed-model-id=ID" in told
    jobs = explanation(find({"pending_operations": [operation("a")]}), "dev")
    assert "endpoint" not in jobs
