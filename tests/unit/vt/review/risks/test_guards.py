"""Settings of a stack file that lower a guard: in the headline, in an answer and in the digest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import guards, report
from vertex_training_cli.review.headline import verdict

REPOSITORY = "gcp:artifactregistry/repository:Repository"


def planned(
    drift: dict[str, Any] | None = None,
    rules: dict[str, str] | None = None,
    *more: plans.Event,
    deployed: dict[str, Any] | None = None,
) -> Plan:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {}, outputs=deployed or {}
    )
    config = {
        "vertex-training:drift": json.dumps(drift or {}),
        "vertex-training:rules": json.dumps(rules or {}),
        "vertex-training:teams": json.dumps({"vision": {}}),
    }
    return events.parse(plans.lines(stack, *more, config=config), "dev")


def headline(plan: Plan) -> str:
    return verdict(report.build(plan, source="here"))


@pytest.mark.parametrize(
    ("key", "old", "new", "told"),
    [
        (
            "dockerConfig",
            {"immutableTags": True},
            {"immutableTags": False},
            "tags of images can be moved",
        ),
        (
            "vulnerabilityScanningConfig",
            {"enablementConfig": "INHERITED"},
            {"enablementConfig": "DISABLED"},
            "images are not scanned",
        ),
        (
            "labels",
            {"team": "vision"},
            {},
            "accounts of every team may name it, not of vision alone",
        ),
    ],
)
def test_a_guard_on_a_resource_that_goes_is_in_the_headline(
    key: str, old: dict[str, Any], new: dict[str, Any], told: str
) -> None:
    step = plans.step("update", REPOSITORY, "registry-docker", {key: old}, {key: new})
    assert f"guards lowered: registry-docker ({told})" in headline(planned(None, None, step))
    back = plans.step("update", REPOSITORY, "registry-docker", {key: new}, {key: old})
    assert "guards lowered" not in headline(planned(None, None, back))


def differences(found: tuple[FieldDifference, ...]) -> list[tuple[str, str | None, str | None]]:
    return [(each.path, each.old, each.new) for each in found]


def test_exceptions_from_what_is_included_are_by_path_old_and_new() -> None:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "s", {}, {}, outputs={"overrides": {"a.z": 1, "a.k": [1]}}
    )
    config = {"vertex-training:overrides": json.dumps({"a.b": "x", "a.k": [1], "a.y": None})}
    plan = events.parse(plans.lines(stack, config=config), "dev")
    assert differences(guards.changed_overrides(plan)) == [
        ("a.b", "as included", '"x"'),
        ("a.y", "as included", "null"),
        ("a.z", "1", "as included"),
    ]
