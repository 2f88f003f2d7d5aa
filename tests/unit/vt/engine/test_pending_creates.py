"""What pending creations mean after an `up` that ended well."""

from __future__ import annotations

from typing import Any

from vertex_training_cli.up.command import PendingCreates, explanation, find_pending

URN = "urn:pulumi:dev::p::pulumi-python:dynamic/vertex:CustomJob::training-"


def operation(name: str, kind: str = "creating") -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": URN + name}}


def resource(name: str, **more: Any) -> dict[str, Any]:
    return {"urn": URN + name, **more}


def test_one_that_nobody_created_again_keeps_all_of_them() -> None:
    found = find_pending(
        {
            "resources": [resource("a"), resource("b", delete=True)],
            "pending_operations": [operation("a"), operation("b"), operation("gone")],
        }
    )
    assert found == PendingCreates((URN + "a",), (URN + "a",), (URN + "b", URN + "gone"))
    assert not found.clearable
    assert explanation(found, "dev") == (
        "a killed run may have created training-b, training-gone, which the stack's state does "
        "not contain. The pending operation stays in the state. Search for the resource (`vt "
        "jobs list --stack dev`, `vt models list`) and delete the resource. Then run `pulumi "
        "refresh --stack dev --clear-pending-creates`"
    )
