"""Levels of policies that a change lowers: those of the deployed stack beside those of now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import STACK, Plan

#: The config of the stack file's section, as the engine shows it: JSON.
POLICY_LEVELS: Final = "vertex-training:policyLevels"
#: The level of a policy that nobody gives another one.
DEFAULT: Final = "mandatory"
#: Levels, from what is not even looked at to what stops a deployment.
ORDER: Final = ("disabled", "advisory", "remediate", DEFAULT)


def policy_levels(plan: Plan) -> dict[str, str]:
    """The levels that policies are given, by name: by the stack file, then by the command."""
    try:
        given = json.loads(plan.config.get(POLICY_LEVELS) or "{}")
    except json.JSONDecodeError:
        given = {}
    own = given if isinstance(given, Mapping) else {}
    found = {str(name): str(level) for name, level in own.items()} | dict(plan.levels)
    return dict(sorted(found.items()))


def lowered_levels(plan: Plan) -> tuple[FieldDifference, ...]:
    """Policies whose level is lower than in the deployed stack, old and new."""
    outputs = (step.old.outputs for step in plan.steps if step.type == STACK and step.old)
    found = next(outputs, {}).get("policyLevels")
    before = found if isinstance(found, Mapping) else {}
    return tuple(
        FieldDifference(name, str(before.get(name, DEFAULT)), level)
        for name, level in policy_levels(plan).items()
        if _rank(level) < _rank(before.get(name, DEFAULT))
    )


def _rank(level: object) -> int:
    return ORDER.index(str(level)) if level in ORDER else len(ORDER)
