"""What a plan opens to everybody, and what it lets reach anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET, FIREWALL
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.review.grants import bindings_of, is_iam

Inputs = Mapping[str, Any]
#: Ranges with every address.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")


def opened_to_everybody(plan: Plan) -> tuple[str, ...]:
    """What everybody, or every address, reaches after a plan and did not before; in words."""
    found = (name for step in plan.changed for name in _public(step, "new") - _public(step, "old"))
    return tuple(sorted(found))


def opened_egress(plan: Plan) -> tuple[str, ...]:
    """Names of firewall rules that newly let machines reach any address."""
    firewalls = (step for step in plan.changed if step.type == FIREWALL)
    return tuple(
        sorted(
            step.name
            for step in firewalls
            if _reaches_anywhere(_inputs(step, "new"))
            and not _reaches_anywhere(_inputs(step, "old"))
        )
    )


def _public(step: Step, side: str) -> set[str]:
    """What one state of a resource opens to everybody."""
    inputs = _inputs(step, side)
    if inputs is None:
        return set()
    if is_iam(step):
        bindings = bindings_of(step, step.new if side == "new" else step.old)
        return {f"{each.kind} {each.target}" for each in bindings if each.is_public}
    if _allows_anywhere(inputs, "INGRESS"):
        return {f"firewall {step.name}"}
    # Closed buckets refuse every grant to everybody: what opens one makes such a grant possible.
    if step.type == BUCKET and inputs.get("publicAccessPrevention") != "enforced":
        return {f"bucket {inputs.get('name', step.name)} (no public access prevention)"}
    return set()


def _reaches_anywhere(inputs: Inputs | None) -> bool:
    """Whether machines reach any address by a rule: outward, or inward of every machine there is.

    An ingress rule without ranges of destinations is for the machines that it is about.
    """
    if not inputs or not inputs.get("allows") or inputs.get("disabled") is True:
        return False
    named = _has_anywhere(inputs.get("destinationRanges") or ())
    return named or _allows_anywhere(inputs, "EGRESS")


def _allows_anywhere(inputs: Inputs | None, direction: str) -> bool:
    """Whether a firewall rule lets traffic of this direction through, whatever its other end."""
    if not inputs or not inputs.get("allows") or inputs.get("disabled") is True:
        return False
    if (inputs.get("direction") or "INGRESS") != direction:
        return False
    if direction == "EGRESS":
        # Without ranges, an egress rule holds for every destination.
        return _has_anywhere(inputs.get("destinationRanges") or ANYWHERE)
    sources = ("sourceTags", "sourceServiceAccounts")
    return _has_anywhere(
        inputs.get("sourceRanges") or (() if any(map(inputs.get, sources)) else ANYWHERE)
    )


def _has_anywhere(ranges: Any) -> bool:
    return isinstance(ranges, list | tuple) and any(each in ANYWHERE for each in ranges)


def _inputs(step: Step, side: str) -> Inputs | None:
    state = step.new if side == "new" else step.old
    return state.inputs if state else None
