"""Schedules, snapshots and reservations of a plan, and their costs.

The provider estimates the query of a snapshot during the review's preview, and puts the result into
its inputs (``resolved``). A reservation costs money, used or not. Machines that a reservation
releases may go to another customer. A reservation that is recreated, for example with other GPUs or
in another zone, is deleted first, because both have the same name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training.catalog.resource_types import RESERVATION, SCHEDULE, SNAPSHOT, value_at
from vertex_training.naming import SNAPSHOTS
from vertex_training.settings import cron
from vertex_training.snapshots import estimate
from vertex_training.snapshots.estimate import RESOLVED
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import as_mapping, diff_fields
from vertex_training_cli.review.jobs import differences, images_of, job_name, job_spec, request
from vertex_training_cli.review.parts import Change, Finding, Quote, first

SCHEDULE_ACTIONS: Final = {"create": "begin", "update": "change", "delete": "end"}
SCHEDULE_FATES: Final = {
    "begin": "starts: submits jobs from the first start time after the deployment",
    "change": "changes from the next start time",
    "end": "ends: submits no more jobs, and its running job is cancelled",
    "keep": "unchanged",
}
#: Number of slots in a report.
SLOTS: Final = 5
#: Note below the table of schedules.
TIMER: Final = (
    "A timer must run `vt jobs advance`, which submits the due jobs. Start times are in UTC, and "
    "begin at the time of this report."
)
#: Step -> action on a snapshot. The stack never deletes files of a snapshot.
SNAPSHOT_ACTIONS: Final = {
    "create": "query",
    "replace": "query",
    "update": "change",
    "delete": "leave",
}
SNAPSHOT_FATES: Final = {
    "query": "queried",
    "take": "adopted: the snapshot exists, so its query does not run",
    "change": "changed maximum bytes; the query does not run",
    "leave": "removed from the stack; its files are not deleted",
    "keep": "unchanged",
}
#: Estimate of a snapshot in a plan without an answer of BigQuery.
NOT_ASKED: Final = "not estimated"
SNAPSHOT_PRICES: Final = (
    "Prices are on-demand prices by location, without the free TiB a month, and the highest known "
    "price for an unknown location. The bound is the most that the query may bill: BigQuery "
    "refuses a larger query without a charge. Files of all snapshots, also earlier ones, stay "
    "until `vt data snapshots delete`."
)


def schedule_changes(plan: Plan, now: datetime | None = None) -> list[Change]:
    """Return all schedules of a plan by the names of their jobs.

    ``slots`` are the next start times after ``now``, empty while the schedule is paused or if it
    ends. ``worst_month_usd`` is the cost of a month if all slots run until their timeout, None
    without a price.
    """
    moment, changes = now or datetime.now(UTC), list[Change]()
    for step in plan.steps:
        if step.type != SCHEDULE:
            continue
        inputs, action = step.inputs, SCHEDULE_ACTIONS.get(step.op, "keep")
        schedule, message = as_mapping(inputs.get("schedule")), request(inputs)
        line, zone = str(schedule.get("cron", "")), str(schedule.get("timeZone", ""))
        is_valid = not cron.problem(line) and zone in cron.zones()
        calendar = cron.Calendar(line, zone) if is_valid else None
        paused = bool(schedule.get("paused"))
        slots = calendar.next(moment, SLOTS) if calendar and not paused and action != "end" else []
        most, spec = calendar.most_a_month if calendar else 0, job_spec(message)
        cost = costs.of_job(message, str(as_mapping(inputs.get("submission")).get("region", "")))
        both = [as_mapping(s.inputs.get("schedule")) for s in (step.old, step.new) if s]
        compared = step.changes and len(both) == len(("old", "new"))
        change = Change(
            name=job_name(step),
            action=action,
            words=calendar.words if calendar else "the cron line is not valid",
            paused=paused,
            missed=str(schedule.get("missed", "")),
            slots=tuple(f"{slot:%Y-%m-%d %H:%M}" for slot in slots),
            most_a_month=most,
            worst_month_usd=None if cost.worst_case is None else cost.worst_case * most,
            account=str(spec.get("serviceAccount", "")),
            images=images_of(spec),
            differences=[*diff_fields(*both), *differences(step)] if compared else [],
            dropped=(),
        )
        changes.append(change)
    return sorted(changes, key=lambda change: change.name)


def monthly_cost(schedule: Change) -> str:
    """Return the maximum cost of a month as text."""
    price = "price unknown"
    if schedule.worst_month_usd is not None:
        price = f"at most {usd(schedule.worst_month_usd)} a month"
    if schedule.paused:
        return f"$0 while paused, then {price}"
    return f"{price} ({schedule.most_a_month} jobs a month)"


def costs_in_words(changes: Sequence[Change], quote: Quote) -> list[str]:
    """Return texts with the maximum costs of new and changed schedules."""
    changed = (change for change in changes if change.action in ("begin", "change"))
    return [f"schedule {quote(change.name)}: {monthly_cost(change)}" for change in changed]


def ends_in_words(changes: Sequence[Change], quote: Quote) -> list[str]:
    """Return texts about schedules that the plan ends."""
    return [f"schedule {quote(change.name)} ends" for change in changes if change.action == "end"]


def drops_in_words(changes: Sequence[Change], quote: Quote) -> list[str]:
    """Return the start times that are due and that a changed schedule omits."""
    dropped = ((change, first([quote(slot) for slot in change.dropped])) for change in changes)
    return [f"{quote(change.name)} {slots}" for change, slots in dropped if slots]


def snapshot_changes(plan: Plan) -> list[Change]:
    """Return all snapshots of a plan, by name.

    ``bound_usd`` and ``usd`` are on-demand prices of ``bound_bytes`` and ``reads_bytes``, None if
    unknown; ``at_least`` is True if the query may read more. ``rows`` are those of an existing
    snapshot. ``changed`` are source tables that changed after the query, ``personal`` are columns
    that look like personal data, and ``readers`` are jobs after the plan that name the folder.
    """
    jobs = {job_name(s): str(s.new.inputs.get("request")) for s in plan.steps
            if s.type in WITH_REQUEST and s.new}  # fmt: skip
    changes = (_snapshot(step, jobs) for step in plan.steps if step.type == SNAPSHOT)
    return sorted(changes, key=lambda change: change.name)


def _snapshot(step: Step, jobs: Mapping[str, str]) -> Change:
    inputs = step.inputs
    identity, options = (as_mapping(inputs.get(key)) for key in ("snapshot", "options"))
    resolved = _estimate(as_mapping(inputs.get(RESOLVED)))
    action = SNAPSHOT_ACTIONS.get(step.op, "keep")
    rows, bound = resolved.get("rows"), _whole(options.get("maxBytesBilled")) or 0
    reads, name = resolved.get("processed"), str(identity.get("name") or step.name)
    bucket, stack = identity.get("bucket"), identity.get("stack")
    place = f"{bucket}/{SNAPSHOTS}/{stack}/{name}/{inputs.get('requestId')}"
    # An empty location is priced as an unknown one.
    location = str(value_at(inputs, "request.location") or "")
    at_least = bool(resolved.get("atLeast"))
    unpriced = reads is None or at_least or resolved.get("capacity")
    told = NOT_ASKED if action != "leave" else ""
    return Change(
        name=name,
        action="take" if action == "query" and rows is not None else action,
        run=str(_whole(identity.get("run")) or ""),
        folder=f"gs://{place}",
        bound_bytes=bound,
        bound_usd=estimate.usd(bound, location),
        reads_bytes=reads,
        at_least=at_least,
        usd=None if reads is None or unpriced else estimate.usd(reads, location),
        rows=rows,
        bytes=resolved.get("bytes"),
        queried_at=str(resolved.get("queriedAt") or ""),
        sources=resolved.get("sources", ()),
        changed=resolved.get("changed", ()),
        personal=resolved.get("personal", ()),
        readers=tuple(job for job, request in jobs.items() if place in request),
        told=estimate.words(resolved, bound, location) if resolved else told,
    )


def _estimate(resolved: Mapping[str, object]) -> dict[str, Any]:
    """Return the provider's estimate with checked types, because a plan is not trusted."""
    if not resolved:
        return {}
    return {
        **resolved,
        **{key: _whole(resolved.get(key)) for key in ("rows", "bytes", "processed")},
        **{
            key: tuple(map(str, texts)) if isinstance(texts := resolved.get(key), list) else ()
            for key in estimate.TOLD
        },
        "capacity": resolved.get("capacity"),
    }


def _whole(value: object) -> int | None:
    """Return an integer that the engine wrote as a float or a text; None for other values."""
    try:
        return int(value)  # pyright: ignore[reportArgumentType] - any value, or an error
    except (TypeError, ValueError, OverflowError):
        return None


def queried(changes: Sequence[Change]) -> list[Change]:
    """Return the snapshots whose query runs in this plan."""
    return [change for change in changes if change.action == "query"]


def query_cost(change: Change, quote: Quote) -> str:
    """Return the estimated and the maximum cost of a snapshot's query."""
    most = f"at most ${change.bound_usd:,.2f}"
    price = NOT_ASKED if change.reads_bytes is None else "no price: billed by capacity"
    if change.at_least:
        price = f"no price: at least {change.reads_bytes:,} bytes"
    if change.usd is not None:
        price = f"${change.usd:,.2f}"
    return f"query of snapshot {quote(change.name)}: {price} ({most})"


def personal_data(plan: Plan) -> list[Finding]:
    """Return queried snapshots with columns that look like personal data."""
    changes = queried(snapshot_changes(plan))
    return [Finding(change.name, change.personal) for change in changes if change.personal]


def released(finding: Finding, quote: Quote) -> str:
    """Return a reservation with the number, type and zone of its released machines."""
    number = f"{finding.new or 'an unknown number'} x {quote(finding.what)}"
    recreated = ", recreated" if finding.also else ""
    return f"{quote(finding.name)} ({number} in {quote(finding.old)}{recreated})"


def returned_machines(
    step: Step, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield the machines that the plan releases from deleted, replaced or reduced reservations.

    ``what`` is the machine type, ``old`` the zone, ``new`` the number (0 if unknown). Refused
    deletions of protected reservations are omitted.
    """
    if step.old is None:
        return
    before, replaced = _reserved(step, old), step.op == "replace"
    machines = before.machines or 0
    if step.new is not None and not replaced:  # protection does not prevent a reduction
        remaining = _reserved(step, new).machines
        if not remaining or remaining >= machines:
            return
        machines -= remaining
    elif step.is_protected:
        return
    yield Finding(before.name, before.machine_type, before.zone, machines, replaced)


def reservation_changes(plan: Plan) -> list[Change]:
    """Return reservations with changed machines, zone or number, by name.

    Values are those after the plan, or before it if the reservation is deleted. ``before`` is the
    reservation before the plan, if it existed. ``machines``, ``hourly_usd`` and the additional cost
    ``monthly_usd_more`` are None if unknown.
    """
    changes = list[Change]()
    for step, *both in plan.inputs_of(RESERVATION):
        old, new = (_reserved(step, inputs) if inputs else None for inputs in both)
        if old != new:
            before, after = (side.hourly_usd if side else 0.0 for side in (old, new))
            more = None
            if before is not None and after is not None:
                more = (after - before) * costs.HOURS_A_MONTH
            values = vars(new or old)
            changes.append(Change(**values, deleted=not new, monthly_usd_more=more, before=old))
    return sorted(changes, key=lambda change: change.name)


def _reserved(step: Step, inputs: Mapping[str, Any]) -> Change:
    """Return reserved machines, and the price of one machine without Vertex AI's fee."""
    specific = as_mapping(inputs.get("specificReservation"))
    machine = as_mapping(specific.get("instanceProperties"))
    machine_type, zone = str(machine.get("machineType", "")), str(inputs.get("zone", ""))
    count, (accelerator, gpus) = specific.get("count"), _accelerator(machine)
    machines = int(count) if isinstance(count, int | float) else 0
    region = zone.rpartition("-")[0]
    rate = costs.hourly(machine_type, accelerator or None, gpus, region, fee=False)
    return Change(
        name=str(inputs.get("name") or step.name),
        zone=zone,
        machine_type=machine_type,
        machines=machines or None,
        hourly_usd=rate.usd * machines if rate and machines else None,
        price=rate,
    )


def _accelerator(machine: Mapping[str, Any]) -> tuple[str, int]:
    for accelerator in machine.get("guestAccelerators") or ():
        # Compute Engine's nvidia-tesla-t4 is Vertex AI's NVIDIA_TESLA_T4.
        name = str(accelerator.get("acceleratorType", "")).rpartition("/")[2]
        return name.upper().replace("-", "_"), int(accelerator.get("acceleratorCount", 0))
    return "", 0


def reservations_cost(reservations: Sequence[Change], quote: Quote) -> str:
    """Return the change of the monthly cost of all reservations, with their names."""
    changes = [reservation.monthly_usd_more for reservation in reservations]
    prices = [change for change in changes if change is not None]
    missing = len(changes) - len(prices)
    noun = "reservation" if missing == 1 else "reservations"
    more = f"{missing} {noun} without a price" if missing else ""
    total = math.fsum(prices)
    price = f"{'-' if total < 0 else '+'}{usd(abs(total))} a month" if prices else ""
    what = " and ".join(part for part in (price, more) if part)
    named = first([_reserved_machines(reservation, quote) for reservation in reservations])
    return f"reservations (also when idle): {what} ({named})"


def _reserved_machines(change: Change, quote: Quote) -> str:
    old, new = change.before, None if change.deleted else change
    before, after = ((e.machines or "an unknown number") if e else "0" for e in (old, new))
    numbers = f"{before} → {after} x {quote(change.machine_type)}"
    if old and new and (old.machine_type, old.zone) != (new.machine_type, new.zone):
        before, after = (f"{e.machines or 'an unknown number'} x {quote(e.machine_type)} in"
                         f" {quote(e.zone)}" for e in (old, new))  # fmt: skip
        numbers = f"{before} → {after}"
    hourly = [usd(reservation.hourly_usd) if reservation else usd(0) for reservation in (old, new)]
    return f"{quote(change.name)} {numbers}, {hourly[0]} → {hourly[1]} an hour"
