"""IAM in a plan: who gains or loses which right on what, and why the stack gives it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.plan import grants
from vt.engine.plan import Plan, ResourceState, Step
from vt.engine.values import UNKNOWN

#: ``…:IAMMember``, ``…:BucketIAMBinding``, ``…:SecretIamPolicy``: one shape for every service.
IAM = re.compile(r"I[Aa][Mm](Member|Binding|Policy)\Z")
#: Inputs that say what a right is; everything else says on what it is.
GRANT = ("role", "member", "members", "policyData", "condition", "etag")
#: Who includes everybody: https://docs.cloud.google.com/iam/docs/principals-overview
PUBLIC = ("allUsers", "allAuthenticatedUsers")
#: Kinds of things rights are on, by the input that names them. Others go by the input's name.
KINDS = {
    "bucket": "bucket",
    "secretId": "secret",
    "project": "project",
    "serviceAccountId": "account",
    "repository": "repository",
    "subnetwork": "subnetwork",
    "cryptoKeyId": "key",
}
#: Inputs that only say where the thing is.
AROUND = ("project", "location", "region")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A role of a member on one thing."""

    member: str
    role: str
    kind: str
    """bucket, secret, project, account, …"""
    target: str
    condition: str = ""
    reason: str = ""
    """Why the stack gives it; empty if it does not say."""

    @property
    def public(self) -> bool:
        """Whether everybody has it."""
        return self.member in PUBLIC


def is_iam(step: Step) -> bool:
    """Whether a step is about rights."""
    return IAM.search(step.type) is not None


def gained(plan: Plan) -> list[Right]:
    """Rights that nobody had before."""
    return sorted(_all(plan, "new") - _all(plan, "old"))


def lost(plan: Plan) -> list[Right]:
    """Rights that are gone afterwards."""
    return sorted(_all(plan, "old") - _all(plan, "new"))


def held(plan: Plan) -> list[Right]:
    """All rights the stack gives after the plan."""
    return sorted(right for step in plan.steps if is_iam(step) for right in of(step, step.new))


def of(step: Step, state: ResourceState | None) -> Iterator[Right]:
    """The rights that an IAM resource gives in one of its states."""
    if state is None:
        return
    inputs = state.inputs
    key = _place(inputs)
    kind, target = KINDS.get(key, key), str(inputs.get(key, ""))
    if target == UNKNOWN:  # something new: the grant's own name tells what
        target = f"new, see {step.name}"
    role = str(inputs.get("role") or "a whole policy")
    condition = inputs.get("condition") or {}
    members = inputs.get("members") or [inputs.get("member") or "everybody named in it"]
    for member in members if isinstance(members, list) else [members]:
        yield Right(
            member=str(member),
            role=role,
            kind=kind,
            target=target,
            condition=str(condition.get("expression", "")) if isinstance(condition, dict) else "",
            reason=grants.reason(step.type, role),
        )


def _all(plan: Plan, side: str) -> set[Right]:
    # Unchanged ones on both sides: a right that only moves to another resource stays.
    states = ((s, s.new if side == "new" else s.old) for s in plan.steps if is_iam(s))
    return {right for step, state in states for right in of(step, state)}


def _place(inputs: Mapping[str, Any]) -> str:
    """The input that says on what the rights are; empty if none does."""
    named = {key: value for key, value in inputs.items() if key not in GRANT and value}
    narrow = [key for key in named if key not in AROUND] or list(named)
    return next((key for key in KINDS if key in narrow), narrow[0] if narrow else "")
