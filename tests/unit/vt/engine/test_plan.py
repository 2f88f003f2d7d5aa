"""Steps and plans: what changes, whose it is, and what is known of the deployed stack."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.engine.plan import (
    Plan,
    ResourceState,
    Step,
)

BUCKET = "gcp:storage/bucket:Bucket"
OLD = ResourceState({"name": "old"}, {"size": 1}, protect=True, id="x")
NEW = ResourceState({"name": "new"}, {})


def urn(types: str, name: str = "n") -> str:
    return f"urn:pulumi:dev::demo::{types}::{name}"


def step(op: str = "update", type_: str = BUCKET, **more: Any) -> Step:
    return Step(op, urn(type_), type_, **{"old": OLD, "new": NEW, **more})


def test_a_section_is_the_json_of_the_stack_file() -> None:
    config = {"vertex-training:limits": '{"a": 1}', "vertex-training:odd": "[1]", "limits": "{}"}
    plan = Plan("dev", config | {"vertex-training:broken": "{", "vertex-training:empty": ""})
    assert plan.section("limits") == {"a": 1}
    assert [plan.section(name) for name in ("odd", "broken", "empty", "gone")] == [{}] * 4


STACK = "pulumi:pulumi:Stack"


@pytest.mark.parametrize(
    ("succeeded", "steps", "compared"),
    [
        (True, (), True),
        (False, (), False),
        (False, (step("same", STACK),), True),
        (False, (step("create", STACK, old=None),), True),
        (False, (step(),), False),
    ],
)
def test_what_was_is_known_once_the_stack_was_read(
    succeeded: bool, steps: tuple[Step, ...], compared: bool
) -> None:
    assert Plan("dev", steps=steps, succeeded=succeeded).is_compared is compared
