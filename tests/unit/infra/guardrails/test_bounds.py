"""Each policy at its limits, and the words of each violation: ``tests/policy/limits.yaml``."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from tests.policy import cases
from vertex_training.guardrails.policy import UNKNOWN, Resource, load

CASES: Final = yaml.safe_load((cases.ROOT / "tests/policy/limits.yaml").read_text("utf-8"))
POLICIES: Final = {policy.id: policy for policy in load()}


def known(value: Any) -> Any:
    """The value, with ``(unknown)`` as a preview has it."""
    if isinstance(value, dict):
        return {key: known(each) for key, each in value.items()}
    if isinstance(value, list):
        return [known(each) for each in value]
    return UNKNOWN if value == "(unknown)" else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["policy"])
def test_a_resource_at_the_limits_of_a_policy(case: dict[str, Any]) -> None:
    declared = cases.changed(case["resource"], known(case["change"]))
    made = Resource(declared.type, declared.name, declared.props, "prod", declared.protect)
    lines = POLICIES[case["policy"]].violations(made, case.get("settings"))
    assert [line.partition(" Hint: ")[0] for line in lines] == case.get("violations", [])


def test_every_rung_of_a_ladder_is_checked_and_reported_once() -> None:
    job = cases.changed("job", {}).props
    without = cases.changed("job", {"request.jobSpec.serviceAccount": "(absent)"}).props["request"]
    ladder = [{"request": without}, {"request": without}, UNKNOWN, {"request": UNKNOWN}]
    made = Resource("pulumi-python:dynamic/vertex:CustomJob", "job",
                    {**job, "options": {"ladder": ladder}}, "prod")  # fmt: skip
    [line] = POLICIES["job-dedicated-account"].violations(made)
    assert line.startswith("the job has no serviceAccount.")
