"""Schedules, snapshots and reservations of a plan, and their costs.

The provider estimates the query of a snapshot during the preview (``resolved``). Reservations cost
money even if they are idle. Google may assign released machines to another customer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training.catalog.resource_types import RESERVATION, SCHEDULE, SNAPSHOT, value_at
from vertex_training.errors import counted
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
    "change": "changed for all later start times",
    "end": "ends: submits no more jobs, and its running job is cancelled",
    "keep": "unchanged",
}
#: Number of start times in a report.
SLOTS: Final = 5
#: Note below the table of schedules.
TIMER: Final = (
    "A timer must run `vt jobs advance`, which submits the due jobs. The table shows start times "
    "in UTC after the time of this report."
)
#: Step -> action on a snapshot. The stack never deletes the files of a snapshot.
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
#: Estimate of a snapshot if BigQuery did not answer.
NOT_ESTIMATED: Final = "not estimated"
SNAPSHOT_PRICES: Final = (
    "Estimates use the on-demand price of the location, or the highest known price if the location "
    "is unknown. They do not subtract the free TiB a month. BigQuery refuses a query that would "
    "bill more than the maximum bytes, without a charge. Files of all snapshots stay until "
    "`vt data snapshots delete`."
)


def schedule_changes(plan: Plan, now: datetime | None = None) -> list[Change]:
    """Return all schedules of a plan by the names of their jobs.

    ``slots`` are the next start times; empty if the schedule is paused or ends. ``worst_month_usd``
    is the cost of a month if all jobs run until their timeout; None without a price.
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
        compared = step.changes and len(both) == 2
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
    """Return the maximum costs of new and changed schedules as texts."""
    changed = (change for change in changes if change.action in ("begin", "change"))
    return [f"schedule {quote(change.name)}: {monthly_cost(change)}" for change in changed]


def ends_in_words(changes: Sequence[Change], quote: Quote) -> list[str]:
    """Return texts about schedules that the plan ends."""
    return [f"schedule {quote(change.name)} ends" for change in changes if change.action == "end"]


def drops_in_words(changes: Sequence[Change], quote: Quote) -> list[str]:
    """Return schedules with due start times that the plan drops."""
    dropped = ((change, first([quote(slot) for slot in change.dropped])) for change in changes)
    return [f"{quote(change.name)} {slots}" for change, slots in dropped if slots]


def snapshot_changes(plan: Plan) -> list[Change]:
    """Return all snapshots of a plan, by name.

    ``bound_usd`` and ``usd`` are on-demand prices of ``bound_bytes`` and ``reads_bytes``; None if
    unknown. ``at_least`` is True if the query may read more. ``rows`` are those of an existing
    snapshot. ``changed`` are source tables that changed after the query. ``personal`` are columns
    with names of personal data. ``readers`` are jobs that read the snapshot's folder.
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
    told = NOT_ESTIMATED if action != "leave" else ""
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
    """Return the provider's estimate with checked types, because plans may be forged."""
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
    """Return an integer that the engine wrote as a float or a text; None for another value."""
    try:
        return int(value)  # pyright: ignore[reportArgumentType] - any value, or an error
    except (TypeError, ValueError, OverflowError):
        return None


def queried(changes: Sequence[Change]) -> list[Change]:
    """Return the snapshots whose query runs in this plan."""
    return [change for change in changes if change.action == "query"]


def query_cost(change: Change, quote: Quote) -> str:
    """Return the estimated and the maximum cost of a query, as text."""
    most = f"at most ${change.bound_usd:,.2f}"
    price = NOT_ESTIMATED if change.reads_bytes is None else "no price: billed by capacity"
    if change.at_least:
        price = f"no price: at least {change.reads_bytes:,} bytes"
    if change.usd is not None:
        price = f"${change.usd:,.2f}"
    return f"query of snapshot {quote(change.name)}: {price} ({most})"


def personal_data(plan: Plan) -> list[Finding]:
    """Return queried snapshots with columns whose names suggest personal data."""
    changes = queried(snapshot_changes(plan))
    return [Finding(change.name, change.personal) for change in changes if change.personal]


def released(finding: Finding, quote: Quote) -> str:
    """Return a reservation with the number, type and zone of its released machines, as text."""
    number = f"{finding.new or 'an unknown number'} x {quote(finding.what)}"
    recreated = ", recreated" if finding.also else ""
    return f"{quote(finding.name)} ({number} in {quote(finding.old)}{recreated})"


def returned_machines(
    step: Step, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield the machines that the plan releases from deleted, replaced or reduced reservations.

    ``what`` is the machine type, ``old`` the zone, ``new`` the number (0 if unknown).
    """
    if step.old is None:
        return
    before, replaced = _reserved(step, old), step.op == "replace"
    machines = before.machines or 0
    if step.new is not None and not replaced:  # Protection does not prevent a reduction.
        remaining = _reserved(step, new).machines
        if not remaining or remaining >= machines:
            return
        machines -= remaining
    elif step.is_protected:
        return
    yield Finding(before.name, before.machine_type, before.zone, machines, replaced)


def reservation_changes(plan: Plan) -> list[Change]:
    """Return reservations with changed machines, zone or number, by name.

    Values are those after the plan, or before a deletion. ``before`` is the reservation before the
    plan. ``machines``, ``hourly_usd`` and ``monthly_usd_more`` are None if unknown.
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
    more = f"{counted(missing, 'reservation')} without a price" if missing else ""
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
