"""Access of members by way of accounts: what a plan gives and takes, beside its bindings.

A binding names an account and a bucket. Whoever may act as the account reaches the bucket as well;
that is in no single binding, so it is computed over all of them.
"""

from __future__ import annotations

from vertex_training.plan.access import Access, Binding, reachable
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review.grants import bindings_of, is_iam


def access_changes(plan: Plan) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Access through accounts that members gain, and that they lose."""
    before, after = _access(plan, "old"), _access(plan, "new")
    gained = [after[key] for key in after.keys() - before.keys() if after[key].through]
    lost = [before[key] for key in before.keys() - after.keys() if before[key].through]
    return tuple(sorted(gained)), tuple(sorted(lost))


def _access(plan: Plan, side: str) -> dict[tuple[str, str, str, str], Access]:
    """All access of one side, by who may do what with what."""
    states = ((s, s.new if side == "new" else s.old) for s in plan.steps if is_iam(s))
    bindings = (
        Binding(found.member, found.role, found.kind, found.target)
        for step, state in states
        for found in bindings_of(step, state)
    )
    return {(a.member, a.verb, a.kind, a.target): a for a in reachable(bindings)}
