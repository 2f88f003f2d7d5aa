"""Snapshots of a plan: what each query reads and costs, or what is there already.

That is among their inputs (``resolved``): the provider asked during the review's preview.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.naming import SNAPSHOTS
from vertex_training.snapshots import estimate
from vertex_training.snapshots.estimate import RESOLVED
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.jobs import job_name
from vertex_training_cli.review.risk import READABLE, Quote, told_alike

#: What a step means for a snapshot. Nothing of one is ever deleted.
ACTIONS: Final = {"create": "query", "replace": "query", "update": "change", "delete": "leave"}
FATES: Final = {
    "query": "queried",
    "take": "taken as it is there",
    "change": "its bound changes, nothing is queried",
    "leave": "leaves the stack, its files stay",
    "keep": "unchanged",
}
#: What no plan has of a snapshot that it queries.
NOT_ASKED: Final = "not asked"
PRICES: Final = (
    "Prices: on demand by location, the free TiB of each month not deducted; the highest that is "
    "known where a location's is unknown. The bound is what the query may be billed for; BigQuery "
    "refuses more without a charge. Files of snapshots, of those before as well, stay "
    "until `vt data snapshots delete`."
)


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """A snapshot after the plan; before it, if it leaves the stack."""

    name: str
    action: str
    """A key of ``FATES``."""
    run: str
    folder: str
    bound_bytes: int
    bound_usd: float
    """The price of that on demand."""
    reads_bytes: int | None
    """What its query would read; None if that is not asked."""
    at_least: bool
    """Whether it may read more than that."""
    usd: float | None
    """The price of what it reads on demand; None without one."""
    rows: int | None
    """Of one that is there; None of others."""
    bytes: int | None
    queried_at: str
    sources: tuple[str, ...]
    changed: tuple[str, ...]
    """Sources that changed after the query, and when. That is no change of the snapshot."""
    personal: tuple[str, ...]
    """Columns that look like data about people."""
    readers: tuple[str, ...]
    """Jobs after the plan whose requests name its folder."""
    told: str
    """All of this in a line."""


@dataclass(frozen=True, slots=True, order=True)
class PersonalData:
    """Columns of a snapshot that is queried."""

    name: str
    columns: tuple[str, ...]


def snapshot_changes(plan: Plan) -> tuple[SnapshotChange, ...]:
    """All snapshots of a plan, by name."""
    jobs = {job_name(s): str(s.new.inputs.get("request")) for s in plan.steps
            if s.type in WITH_REQUEST and s.new}  # fmt: skip
    found = (_change(step, jobs) for step in plan.steps if step.type == SNAPSHOT)
    return tuple(sorted(found, key=lambda each: each.name))


def _change(step: Step, jobs: Mapping[str, str]) -> SnapshotChange:
    inputs = step.inputs
    identity, options = (as_mapping(inputs.get(key)) for key in ("snapshot", "options"))
    found, action = _known(as_mapping(inputs.get(RESOLVED))), ACTIONS.get(step.op, "keep")
    rows, bound = found.get("rows"), _whole(options.get("maxBytesBilled")) or 0
    reads, name = found.get("processed"), str(identity.get("name") or step.name)
    parts = (
        identity.get("bucket"),
        SNAPSHOTS,
        identity.get("stack"),
        name,
        inputs.get("requestId"),
    )
    place = "/".join(map(str, parts))
    location, at_least = _location(inputs), bool(found.get("atLeast"))
    unpriced = reads is None or at_least or found.get("capacity")
    price = None if reads is None or unpriced else estimate.usd(reads, location)
    told = NOT_ASKED if action != "leave" else ""
    if found:
        told = estimate.words(found, bound, location)
    return SnapshotChange(
        name=name,
        action="take" if action == "query" and rows is not None else action,
        run=str(_whole(identity.get("run")) or ""),
        folder=f"gs://{place}",
        bound_bytes=bound,
        bound_usd=estimate.usd(bound, location),
        reads_bytes=reads,
        at_least=at_least,
        usd=price,
        rows=rows,
        bytes=found.get("bytes"),
        queried_at=str(found.get("queriedAt") or ""),
        sources=found.get("sources", ()),
        changed=found.get("changed", ()),
        personal=found.get("personal", ()),
        readers=tuple(job for job, request in jobs.items() if place in request),
        told=told,
    )


def _known(found: Mapping[str, object]) -> dict[str, Any]:
    """What the provider found, by the types that it writes: a plan may be somebody else's."""
    if not found:
        return {}
    return {
        **found,
        **{key: _whole(found.get(key)) for key in ("rows", "bytes", "processed")},
        **{key: _texts(found.get(key)) for key in estimate.TOLD},
        "capacity": found.get("capacity"),
    }


def _location(inputs: Mapping[str, object]) -> str:
    try:
        return str(json.loads(str(inputs.get("request")))["location"])
    except (ValueError, KeyError, TypeError):
        return ""  # priced as one that is unknown


def _whole(value: object) -> int | None:
    """A number of the engine's, a float or a text, which a file may have instead."""
    try:
        return int(value)  # pyright: ignore[reportArgumentType] - whatever it is, or an error
    except (TypeError, ValueError, OverflowError):
        return None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def queried(changes: Sequence[SnapshotChange]) -> list[SnapshotChange]:
    """Those whose query runs."""
    return [each for each in changes if each.action == "query"]


def cost_text(change: SnapshotChange, quote: Quote) -> str:
    """What the query of one costs, and at most."""
    most = f"at most ${change.bound_usd:,.2f}"
    price = NOT_ASKED if change.reads_bytes is None else "no price: capacity"
    if change.at_least:
        price = f"no price: at least {change.reads_bytes:,} bytes"
    if change.usd is not None:
        price = f"${change.usd:,.2f}"
    return f"query of snapshot {quote(change.name)}: {price} ({most})"


def personal_data(plan: Plan) -> tuple[PersonalData, ...]:
    """Snapshots that a plan makes and that look like data about people."""
    return tuple(
        PersonalData(each.name, each.personal)
        for each in snapshot_changes(plan)
        if each.action == "query" and each.personal
    )


def _told(each: PersonalData, quote: Quote) -> str:
    return f"{quote(each.name)} ({', '.join(map(quote, each.columns))})"


PERSONAL: Final = told_alike(
    personal_data, _told, "personalData", "may copy data about people", READABLE
)
