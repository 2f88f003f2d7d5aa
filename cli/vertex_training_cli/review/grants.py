"""IAM in a plan: the grants that members gain or lose, and why the stack makes them.

A binding names an account and a bucket. Whoever may act as the account reaches the bucket as well;
that is in no single binding, so ``access_changes`` computes it over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.naming import PUBLIC_MEMBERS
from vertex_training.plan.access import Access, Binding, reachable
from vertex_training.plan.grants import reason
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN

#: Inputs that say what is granted. The others say on what.
GRANT_INPUTS: Final = ("role", "member", "members", "policyData", "condition", "etag")
#: Inputs that only say where the resource is.
LOCATION_INPUTS: Final = ("project", "location", "region")


@dataclass(frozen=True, slots=True, order=True)
class IamBinding:
    """A role of one member on one resource."""

    member: str
    role: str
    kind: str
    """bucket, secret, project, account, …"""
    target: str
    condition: str = ""
    reason: str = field(default="", compare=False)
    """Why the program grants it; empty if it does not say, and of a team's own grants."""

    @property
    def is_public(self) -> bool:
        """Whether the member includes everybody."""
        return self.member in PUBLIC_MEMBERS


def short_member(binding: IamBinding | Access) -> str:
    """Its member: a service account by its address alone."""
    return binding.member.removeprefix("serviceAccount:")


def short_target(binding: IamBinding | Access) -> str:
    """Its resource: the last part of the name, which is enough beside its kind."""
    return binding.target.rpartition("/")[2]


def through(access: Access) -> str:
    """The accounts that the member acts as, in their order."""
    return " then ".join(account.partition("@")[0] for account in access.through)


def is_iam(step: Step) -> bool:
    """Whether a step is about IAM."""
    return resource_types.iam_kind(step.type) is not None


def gained(plan: Plan) -> list[IamBinding]:
    """Bindings that are new."""
    return sorted(_all(plan, "new") - _all(plan, "old"))


def lost(plan: Plan) -> list[IamBinding]:
    """Bindings that are gone afterwards."""
    return sorted(_all(plan, "old") - _all(plan, "new"))


def held(plan: Plan) -> list[IamBinding]:
    """All bindings of the stack after the plan."""
    return sorted(
        binding for step in plan.steps if is_iam(step) for binding in bindings_of(step, step.new)
    )


def bindings_of(step: Step, state: ResourceState | None) -> Iterator[IamBinding]:
    """The bindings that an IAM resource makes in one of its states."""
    if state is None:
        return
    inputs = state.inputs
    key = _target_input(inputs)
    kind, target = resource_types.words_of_inputs().get(key, key), str(inputs.get(key, ""))
    if target == UNKNOWN:  # a new resource: the name of the grant says which
        target = f"new, see {step.name}"
    role = str(inputs.get("role") or "a whole policy")
    condition = inputs.get("condition") or {}
    members = inputs.get("members") or [inputs.get("member") or "everybody named in it"]
    for member in members if isinstance(members, list) else [members]:
        yield IamBinding(
            member=str(member),
            role=role,
            kind=kind,
            target=target,
            condition=str(condition.get("expression", "")) if isinstance(condition, dict) else "",
            reason=reason(step.type, role) if step.is_own else "",
        )


def access_changes(plan: Plan) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Access through accounts that members gain, and that they lose."""
    before, after = _access(plan, "old"), _access(plan, "new")
    gained = [after[key] for key in after.keys() - before.keys() if after[key].through]
    lost = [before[key] for key in before.keys() - after.keys() if before[key].through]
    return tuple(sorted(gained)), tuple(sorted(lost))


def _access(plan: Plan, side: str) -> dict[tuple[str, str, str, str], Access]:
    """All access of one side, by who may do what with what."""
    bindings = (Binding(b.member, b.role, b.kind, b.target) for b in _all(plan, side))
    return {(a.member, a.verb, a.kind, a.target): a for a in reachable(bindings)}


def _all(plan: Plan, side: str) -> set[IamBinding]:
    # Unchanged steps count on both sides: a binding that only moves to another resource stays.
    states = ((s, s.new if side == "new" else s.old) for s in plan.steps if is_iam(s))
    return {binding for step, state in states for binding in bindings_of(step, state)}


def _target_input(inputs: Mapping[str, Any]) -> str:
    """The input that names the resource of the grant; empty if none does."""
    named = {key: value for key, value in inputs.items() if key not in GRANT_INPUTS and value}
    narrow = [key for key in named if key not in LOCATION_INPUTS] or list(named)
    known = (key for key in resource_types.words_of_inputs() if key in narrow)
    return next(known, narrow[0] if narrow else "")
