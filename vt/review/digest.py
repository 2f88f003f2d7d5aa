"""The plan's digest: what was approved is what is deployed, or the deployment stops."""

from __future__ import annotations

import hashlib
import json

from vt.engine.plan import Plan


def plan_digest(plan: Plan) -> str:
    """SHA-256 over what the plan does, as 64 hex digits.

    Equal for equal plans, whenever and wherever they are made: it covers the stack, and of every
    resource that changes the step, the inputs before and after, and the protection. It does not
    cover prices, warnings, durations or places on a machine, and of a secret value only that it
    is one.
    """
    steps = [
        {
            "op": step.op,
            "urn": step.urn,
            "old": step.old and _state(step.old.inputs, step.old.protect),
            "new": step.new and _state(step.new.inputs, step.new.protect),
            "paths": sorted(step.paths),
        }
        for step in sorted(plan.changed, key=lambda step: step.urn)
    ]
    content = {"stack": plan.stack, "steps": steps}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _state(inputs: object, protect: bool) -> dict[str, object]:
    return {"inputs": inputs, "protect": protect}
