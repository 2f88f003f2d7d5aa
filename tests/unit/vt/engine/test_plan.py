"""Steps and plans: what changes, whose it is, and what is known of the deployed stack."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.engine.plan import (
    Diagnostic,
    Plan,
    ResourceState,
    Step,
    is_own,
)

JOB = "pulumi-python:dynamic/vertex:CustomJob"
BUCKET = "gcp:storage/bucket:Bucket"
OLD = ResourceState({"name": "old"}, {"size": 1}, protect=True, id="x")
NEW = ResourceState({"name": "new"}, {})


def urn(types: str, name: str = "n") -> str:
    return f"urn:pulumi:dev::demo::{types}::{name}"


def step(op: str = "update", type_: str = BUCKET, **more: Any) -> Step:
    return Step(op, urn(type_), type_, **{"old": OLD, "new": NEW, **more})


@pytest.mark.parametrize(
    ("types", "own"),
    [
        (f"vertextraining:storage:Storage${BUCKET}", True),
        (f"vertex-training:index:TrainingEnvironment$vertextraining:x:Y${BUCKET}", True),
        ("vertextraining:storage:Storage", True),
        (JOB, True),
        ("pulumi-python:dynamic/vertex:JobSchedule", True),
        (BUCKET, False),
        # a name of one's own is no component of ours
    ],
)
def test_what_components_of_the_project_declare_is_its_own(types: str, own: bool) -> None:
    assert is_own(urn(types)) is own
    assert Step("same", urn(types), BUCKET, OLD, NEW).is_own is own


def test_a_step_has_the_inputs_after_it_or_those_before_it() -> None:
    assert step().inputs == {"name": "new"}
    assert step("delete", new=None).inputs == {"name": "old"}
    assert step("read", old=None, new=None).inputs == {}
    assert step().name == "n"


def test_a_section_is_the_json_of_the_stack_file() -> None:
    config = {"vertex-training:limits": '{"a": 1}', "vertex-training:odd": "[1]", "limits": "{}"}
    plan = Plan("dev", config | {"vertex-training:broken": "{", "vertex-training:empty": ""})
    assert plan.section("limits") == {"a": 1}
    assert [plan.section(name) for name in ("odd", "broken", "empty", "gone")] == [{}] * 4


STACK = "pulumi:pulumi:Stack"


def test_outputs_are_those_of_the_deployed_stack() -> None:
    deployed = ResourceState({}, {"limits": {"a": 1}, "text": "x"})
    plan = Plan("dev", steps=(step(), step("same", STACK, old=deployed)))
    assert plan.deployed_outputs == deployed.outputs
    assert plan.deployed_output("limits") == {"a": 1}
    assert plan.deployed_output("text") is None
    assert plan.deployed_output("gone") is None
    new = Plan("dev", steps=(step("create", STACK, old=None),))
    assert new.deployed_outputs == Plan("dev").deployed_outputs == {}


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


def test_what_was_said_is_told_apart_by_its_severity() -> None:
    said = tuple(Diagnostic(each, each) for each in ("error", "warning", "info", "error"))
    plan = Plan("dev", diagnostics=said)
    assert plan.errors == (said[0], said[3])
    assert plan.warnings == (said[1],)
