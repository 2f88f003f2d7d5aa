"""Changes that Google refuses half-way, or that change nothing; only old and new together show it.

The program sees what the files say now, so it cannot compare. A reviewer is told before anything
is cancelled or deleted, with the way to do it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog.resource_types import ATTACHMENT, RESERVATION, SUBNET
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.review.losses import BUCKET, has_locked_retention, retention_days
from vertex_training_cli.review.risk import RiskKind

Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A change that Google refuses half-way, or that has no effect."""

    name: str
    """Of the resource."""
    what: str
    """What happens instead, and the way to do it."""


def refusals(plan: Plan, now: datetime) -> tuple[Refusal, ...]:
    """All of a plan, by resource."""
    found = [each for step in plan.steps if step.type == RESERVATION for each in _end(step, now)]
    found += [each for step in plan.changed if step.type == BUCKET for each in _locked(step)]
    stays = (s for s in plan.steps if s.type == ATTACHMENT and s.old and s.op != "replace")
    if any(step.new for step in stays):
        subnets = (step for step in plan.changed if step.type == SUBNET)
        found += [each for step in subnets for each in _moved(step)]
    return tuple(sorted(found))


def _end(step: Step, now: datetime) -> Iterator[Refusal]:
    """An end that the stack file says no longer: Google keeps it, and the plugin sends nothing."""
    if step.old is None or step.new is None or step.op == "replace":
        return
    if step.new.inputs.get("deleteAtTime") or step.new.inputs.get("deleteAfterDuration"):
        return
    ends = _time(step.old.outputs.get("deleteAtTime") or step.old.inputs.get("deleteAtTime"))
    if ends and ends > now:
        yield Refusal(
            str(step.new.inputs.get("name") or step.name),
            f"is still deleted by Google at {ends.isoformat()}: to take the end out of the stack "
            "file changes nothing. A later deleteAtTime makes it anew; without an end, `pulumi up "
            "--replace` with its URN does. Both give its machines back first",
        )


def _locked(step: Step) -> Iterator[Refusal]:
    """A locked retention that would be shorter, or gone; or its bucket, which has objects."""
    if step.old is None or not has_locked_retention(step.old.inputs):
        return
    before = retention_days(step.old.inputs)
    after = retention_days(step.new.inputs) if step.new else 0
    locked = step.new is not None and has_locked_retention(step.new.inputs)
    if not locked or after < before:
        yield Refusal(
            str(step.old.inputs.get("name") or step.name),
            f"has a locked retention of {before:g} days, and Google shortens and removes none: no "
            f"object can be deleted before it is {before:g} days old, and the bucket only without "
            "objects. Put the retention back into the stack file",
        )
    elif step.op == "replace":
        yield Refusal(
            str(step.old.inputs.get("name") or step.name),
            f"is made anew, and its retention of {before:g} days is locked: Google deletes the "
            "bucket only without objects. Put back what makes it anew, or give the new bucket "
            "another key in the stack file",
        )


def _moved(step: Step) -> Iterator[Refusal]:
    """Other addresses for the subnet of an attachment that stays: it cannot be deleted in use."""
    if step.old is None or step.new is None:
        return
    old, new = _block(step.old.inputs), _block(step.new.inputs)
    if old is None or new is None or old.subnet_of(new):
        return
    yield Refusal(
        str(step.new.inputs.get("name") or step.name),
        f"{old} → {new} makes the subnet anew, and Google refuses to delete it while its network "
        "attachment uses it: the deployment would stop there. Deploy twice: without the section "
        "network, and without it in the job files; then with the new range. A range that contains "
        "the old one is changed in place",
    )


def _block(inputs: Inputs) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(str(inputs.get("ipCidrRange")))
    except ValueError:
        return None


def _time(text: object) -> datetime | None:
    """A time as the API spells it; None if it is none."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


REFUSALS: Final = RiskKind(
    lambda plan: refusals(plan, datetime.now(tz=UTC)),
    lambda refusal, quote: quote(refusal.name),
    key="refusals",
    headline="not possible like this",
    line=lambda refusal, quote: f"not possible like this: {quote(refusal.name)} {refusal.what}",
)
