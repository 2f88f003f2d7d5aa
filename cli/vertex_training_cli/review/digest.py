"""The plan's digest: what was approved is what is deployed, or the deployment stops."""

from __future__ import annotations

import hashlib
import json

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.snapshots.estimate import RESOLVED
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.review.guards import SECTIONS
from vertex_training_cli.review.limits import limits_of, policy_levels, raised_limits


def plan_digest(plan: Plan) -> str:
    """SHA-256 over what the plan does, as 64 hex digits.

    Equal for equal plans, whenever and wherever they are made. It covers the stack; of every
    resource that changes the step, the inputs before and after, and the protection; protection
    that changes alone; the limits, exceptions of drift and levels of rules; the policies and what
    they found, with the levels; and whether the preview succeeded. It does not cover prices,
    warnings of the program, durations or places on a machine, and of a secret value only that it
    is one.
    """
    content = {
        "stack": plan.stack,
        "steps": _steps(plan),
        "protection": _protection(plan),
        "limits": [limits_of(plan), [_plain(each) for each in raised_limits(plan)]],
        "policies": _policies(plan),
        "guards": {name: plan.section(name) for name in SECTIONS},
        "succeeded": plan.succeeded,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _steps(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "op": step.op,
            "urn": step.urn,
            "old": step.old and _state(step, step.old),
            "new": step.new and _state(step, step.new),
            "paths": sorted(step.paths),
        }
        for step in sorted(plan.changed, key=lambda step: step.urn)
    ]


def _state(step: Step, state: ResourceState) -> dict[str, object]:
    known = {RESOLVED} if step.type == SNAPSHOT else set[str]()  # tables grow after the approval
    inputs = {key: value for key, value in state.inputs.items() if key not in known}
    return {"inputs": inputs, "protect": state.protect}


def _protection(plan: Plan) -> list[tuple[str, bool, bool]]:
    """Protection that changes on resources where nothing else does."""
    return sorted(
        (step.urn, step.old.protect, step.new.protect)
        for step in plan.steps
        if step.custom and step.old and step.new and step.old.protect != step.new.protect
    )


def _policies(plan: Plan) -> dict[str, object]:
    # Messages are for people: another wording is no other result.
    return {
        "packs": sorted(plan.packs),
        "checked": sorted(plan.policies),
        "levels": policy_levels(plan),
        "found": sorted((each.policy, each.level, each.urn) for each in plan.violations),
    }


def _plain(limit: FieldDifference) -> tuple[str, str | None, str | None]:
    return limit.path, limit.old, limit.new
