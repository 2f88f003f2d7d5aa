"""Schedules, snapshots and reservations of a plan: what costs something beside jobs and endpoints.

What a query of a snapshot reads, or what is there already, is among its inputs (``resolved``): the
provider asked during the review's preview. A reservation is paid for whether it is used or not.
Machines that it gives back are sold to whoever asks first; one that is made anew, for example with
other GPUs or in another zone, is deleted first, since both have one name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost, Rate, usd
from vertex_training.catalog.resource_types import RESERVATION, SCHEDULE, SNAPSHOT, value_at
from vertex_training.naming import SNAPSHOTS
from vertex_training.settings import cron
from vertex_training.snapshots import estimate
from vertex_training.snapshots.estimate import RESOLVED
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import FieldDifference, as_mapping, diff_fields
from vertex_training_cli.review.jobs import differences, images_of, job_name, job_spec, request
from vertex_training_cli.review.parts import LOST, READABLE, Finding, Quote, first, risk

SCHEDULE_ACTIONS: Final = {"create": "begin", "update": "change", "delete": "end"}
SCHEDULE_FATES: Final = {
    "begin": "begins: the first slot after the deployment is the first that is submitted",
    "change": "changes: the next slot is submitted as it is then",
    "end": "ends: nothing is submitted any more, and the job of a slot that runs is cancelled",
    "keep": "unchanged",
}
#: Slots that a report names.
SLOTS: Final = 5
#: What nobody submits is no slot: said where a schedule is.
TIMER: Final = (
    "`vt jobs advance` submits slots, whenever a timer runs it: without one, nothing runs. Slots "
    "are named in UTC, as seen from when this was written."
)
#: What a step means for a snapshot. Nothing of one is ever deleted.
SNAPSHOT_ACTIONS: Final = {
    "create": "query",
    "replace": "query",
    "update": "change",
    "delete": "leave",
}
SNAPSHOT_FATES: Final = {
    "query": "queried",
    "take": "taken as it is there",
    "change": "its bound changes, nothing is queried",
    "leave": "leaves the stack, its files stay",
    "keep": "unchanged",
}
#: What no plan has of a snapshot that it queries.
NOT_ASKED: Final = "not asked"
SNAPSHOT_PRICES: Final = (
    "Prices: on demand by location, the free TiB of each month not deducted; the highest that is "
    "known where a location's is unknown. The bound is what the query may be billed for; BigQuery "
    "refuses more without a charge. Files of snapshots, of those before as well, stay "
    "until `vt data snapshots delete`."
)


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """A schedule after the plan; before it, if it ends."""

    name: str
    """The job's name in the stack."""
    action: str
    """A key of ``SCHEDULE_FATES``."""
    words: str
    """When, in words."""
    paused: bool
    missed: str
    """Handling of missed slots: latest, skip or all."""
    slots: tuple[str, ...]
    """The next ones; none while it is paused, or after its end."""
    most_a_month: int
    worst_month_usd: float | None
    """Of slots that all run until their timeout; None without a price."""
    account: str
    images: tuple[str, ...]
    differences: tuple[FieldDifference, ...]
    dropped: tuple[str, ...] = ()
    """Slots that are due, were not submitted, and are not made up for."""

    @property
    def cost(self) -> str:
        """Return what a month of it can cost, in words."""
        if self.paused:
            return f"nothing while it is paused, {usd(self.worst_month_usd)} a month afterwards"
        return f"at most {usd(self.worst_month_usd)} a month ({self.most_a_month} slots)"


def schedule_changes(plan: Plan, now: datetime | None = None) -> tuple[ScheduleChange, ...]:
    """Return all schedules of a plan by name; their next slots are those after ``now``."""
    moment = now or datetime.now(UTC)
    changes = (_schedule(step, moment) for step in plan.steps if step.type == SCHEDULE)
    return tuple(sorted(changes, key=lambda change: change.name))


def _schedule(step: Step, now: datetime) -> ScheduleChange:
    inputs, action = step.inputs, SCHEDULE_ACTIONS.get(step.op, "keep")
    schedule, message = as_mapping(inputs.get("schedule")), request(inputs)
    calendar = _calendar(schedule)
    paused = bool(schedule.get("paused"))
    stands = calendar is not None and not paused and action != "end"
    slots = calendar.next(now, SLOTS) if calendar and stands else []
    region = str(as_mapping(inputs.get("submission")).get("region", ""))
    most = calendar.most_a_month if calendar else 0
    cost: JobCost = costs.of_job(message, region)
    spec = job_spec(message)
    return ScheduleChange(
        name=job_name(step),
        action=action,
        words=calendar.words if calendar else "no cron line",
        paused=paused,
        missed=str(schedule.get("missed", "")),
        slots=tuple(f"{slot:%Y-%m-%d %H:%M}" for slot in slots),
        most_a_month=most,
        worst_month_usd=None if cost.worst_case is None else cost.worst_case * most,
        account=str(spec.get("serviceAccount", "")),
        images=images_of(spec),
        differences=tuple(_differences(step)),
    )


def _calendar(schedule: Mapping[str, Any]) -> cron.Calendar | None:
    """Return the calendar of inputs; None if they are in no order."""
    line, zone = str(schedule.get("cron", "")), str(schedule.get("timeZone", ""))
    return None if cron.problem(line) or zone not in cron.zones() else cron.Calendar(line, zone)


def _differences(step: Step) -> list[FieldDifference]:
    """Return what changes in the calendar, then in what every slot submits."""
    if step.old is None or step.new is None or not step.changes:
        return []
    both = (as_mapping(state.inputs.get("schedule")) for state in (step.old, step.new))
    return [*diff_fields(*both), *differences(step)]


def costs_in_words(changes: Sequence[ScheduleChange], quote: Quote) -> list[str]:
    """Return what schedules that begin or change can cost."""
    changed = (change for change in changes if change.action in ("begin", "change"))
    return [f"schedule {quote(change.name)}: {change.cost}" for change in changed]


def ends_in_words(changes: Sequence[ScheduleChange], quote: Quote) -> list[str]:
    """Return schedules that end."""
    return [f"schedule {quote(change.name)} ends" for change in changes if change.action == "end"]


def drops_in_words(changes: Sequence[ScheduleChange], quote: Quote) -> list[str]:
    """Return slots that are due, and that a changed schedule drops."""
    dropped = ((change, first([quote(slot) for slot in change.dropped])) for change in changes)
    return [f"{quote(change.name)} {slots}" for change, slots in dropped if slots]


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """A snapshot after the plan; before it, if it leaves the stack."""

    name: str
    action: str
    """A key of ``SNAPSHOT_FATES``."""
    run: str
    folder: str
    bound_bytes: int
    bound_usd: float
    """The price of that on demand."""
    reads_bytes: int | None
    """Bytes that its query would read; None without an estimate."""
    at_least: bool
    """True if it may read more than that."""
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


def snapshot_changes(plan: Plan) -> tuple[SnapshotChange, ...]:
    """Return all snapshots of a plan, by name."""
    jobs = {job_name(s): str(s.new.inputs.get("request")) for s in plan.steps
            if s.type in WITH_REQUEST and s.new}  # fmt: skip
    changes = (_snapshot(step, jobs) for step in plan.steps if step.type == SNAPSHOT)
    return tuple(sorted(changes, key=lambda change: change.name))


def _snapshot(step: Step, jobs: Mapping[str, str]) -> SnapshotChange:
    inputs = step.inputs
    identity, options = (as_mapping(inputs.get(key)) for key in ("snapshot", "options"))
    resolved, action = (
        _known(as_mapping(inputs.get(RESOLVED))),
        SNAPSHOT_ACTIONS.get(step.op, "keep"),
    )
    rows, bound = resolved.get("rows"), _whole(options.get("maxBytesBilled")) or 0
    reads, name = resolved.get("processed"), str(identity.get("name") or step.name)
    bucket, stack = identity.get("bucket"), identity.get("stack")
    place = f"{bucket}/{SNAPSHOTS}/{stack}/{name}/{inputs.get('requestId')}"
    location = str(value_at(inputs, "request.location") or "")  # none: priced as an unknown one
    at_least = bool(resolved.get("atLeast"))
    unpriced = reads is None or at_least or resolved.get("capacity")
    price = None if reads is None or unpriced else estimate.usd(reads, location)
    told = NOT_ASKED if action != "leave" else ""
    if resolved:
        told = estimate.words(resolved, bound, location)
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
        bytes=resolved.get("bytes"),
        queried_at=str(resolved.get("queriedAt") or ""),
        sources=resolved.get("sources", ()),
        changed=resolved.get("changed", ()),
        personal=resolved.get("personal", ()),
        readers=tuple(job for job, request in jobs.items() if place in request),
        told=told,
    )


def _known(resolved: Mapping[str, object]) -> dict[str, Any]:
    """Return what the provider found, by the types that it writes; a plan is not trusted."""
    if not resolved:
        return {}
    return {
        **resolved,
        **{key: _whole(resolved.get(key)) for key in ("rows", "bytes", "processed")},
        **{key: _texts(resolved.get(key)) for key in estimate.TOLD},
        "capacity": resolved.get("capacity"),
    }


def _whole(value: object) -> int | None:
    """Return a whole number that the engine wrote as a float or a text; None if it is none."""
    try:
        return int(value)  # pyright: ignore[reportArgumentType] - whatever it is, or an error
    except (TypeError, ValueError, OverflowError):
        return None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def queried(changes: Sequence[SnapshotChange]) -> list[SnapshotChange]:
    """Return the snapshots whose query runs."""
    return [change for change in changes if change.action == "query"]


def query_cost(change: SnapshotChange, quote: Quote) -> str:
    """Return what the query of a snapshot costs, and at most."""
    most = f"at most ${change.bound_usd:,.2f}"
    price = NOT_ASKED if change.reads_bytes is None else "no price: capacity"
    if change.at_least:
        price = f"no price: at least {change.reads_bytes:,} bytes"
    if change.usd is not None:
        price = f"${change.usd:,.2f}"
    return f"query of snapshot {quote(change.name)}: {price} ({most})"


def _columns(finding: Finding, quote: Quote) -> str:
    return f"{quote(finding.name)} ({', '.join(map(quote, finding.what))})"


@risk("may copy data about people", _columns, "personalData", READABLE,
      fields="name columns=what")  # fmt: skip
def personal_data(plan: Plan) -> list[Finding]:
    """Return snapshots that a plan makes and that look like data about people."""
    changes = queried(snapshot_changes(plan))
    return [Finding(change.name, change.personal) for change in changes if change.personal]


@dataclass(frozen=True, slots=True)
class ReservationCost:
    """Machines that are kept, and paid for, from creation until the reservation is deleted."""

    name: str
    zone: str
    machine_type: str
    machines: int
    """Number of; 0 if that is not known yet."""
    rate: Rate | None
    """Of one machine, without Vertex AI's fee; None if no source has a price."""

    @property
    def hourly(self) -> float | None:
        """USD an hour of all machines; None without a price or a number of machines."""
        return self.rate.usd * self.machines if self.rate and self.machines else None


@dataclass(frozen=True, slots=True)
class ReservationChange:
    """A reservation before and after the plan; None where there is none."""

    old: ReservationCost | None
    new: ReservationCost | None

    @property
    def either(self) -> ReservationCost:
        """The reservation after the plan, or before it if it is deleted."""
        reservation = self.new or self.old
        assert reservation is not None  # a step has a state on one side at least
        return reservation

    @property
    def monthly(self) -> float | None:
        """USD a month that it costs more than before; None without a price or a number."""
        sides = [reservation.hourly if reservation else 0.0 for reservation in (self.old, self.new)]
        old, new = sides
        return None if old is None or new is None else (new - old) * costs.HOURS_A_MONTH


def _given_back(finding: Finding, quote: Quote) -> str:
    number = f"{finding.new or 'an unknown number'} x {quote(finding.what)}"
    anew = ", made anew" if finding.also else ""
    return f"{quote(finding.name)} ({number} in {quote(finding.old)}{anew})"


@risk("machines given back, and may not be had again", _given_back, "returnedMachines", LOST,
      "destroys", "name machineType=what zone=old machines?=new replaced=also")  # fmt: skip
def returned_machines(plan: Plan) -> list[Finding]:
    """Return what deleted, replaced and reduced reservations give back; none that is refused.

    ``what`` is the type of the machines, ``old`` their zone, ``new`` how many, 0 if unknown.
    """
    steps = (step for step in plan.changed if step.type == RESERVATION)
    return sorted(finding for step in steps for finding in _returned(step))


def _returned(step: Step) -> Iterator[Finding]:
    if step.old is None:
        return
    old, replaced = _reserved(step, step.old.inputs), step.op == "replace"
    machines = old.machines
    if step.new is not None and not replaced:  # no protection keeps it from shrinking
        left = _reserved(step, step.new.inputs).machines
        if not left or left >= machines:
            return
        machines -= left
    elif step.is_protected:
        return
    yield Finding(old.name, old.machine_type, old.zone, machines, replaced)


def reservation_changes(plan: Plan) -> list[ReservationChange]:
    """Return reservations with other machines, place or number, by name."""
    steps = (step for step in plan.changed if step.type == RESERVATION)
    changes = (
        ReservationChange(
            step.old and _reserved(step, step.old.inputs),
            step.new and _reserved(step, step.new.inputs),
        )
        for step in steps
    )
    changed = (change for change in changes if change.old != change.new)
    return sorted(changed, key=lambda change: change.either.name)


def _reserved(step: Step, inputs: Mapping[str, Any]) -> ReservationCost:
    specific = as_mapping(inputs.get("specificReservation"))
    machine = as_mapping(specific.get("instanceProperties"))
    machine_type, zone = str(machine.get("machineType", "")), str(inputs.get("zone", ""))
    count, (accelerator, gpus) = specific.get("count"), _accelerator(machine)
    region = zone.rpartition("-")[0]
    return ReservationCost(
        name=str(inputs.get("name") or step.name),
        zone=zone,
        machine_type=machine_type,
        machines=int(count) if isinstance(count, int | float) else 0,
        rate=costs.hourly(machine_type, accelerator or None, gpus, region, fee=False),
    )


def _accelerator(machine: Mapping[str, Any]) -> tuple[str, int]:
    """Return the GPUs that are added to a machine, as jobs name them."""
    for accelerator in machine.get("guestAccelerators") or ():
        # Compute Engine's nvidia-tesla-t4 is Vertex AI's NVIDIA_TESLA_T4.
        name = str(accelerator.get("acceleratorType", "")).rpartition("/")[2]
        return name.upper().replace("-", "_"), int(accelerator.get("acceleratorCount", 0))
    return "", 0


def reservations_cost(reservations: Sequence[ReservationChange], quote: Quote) -> str:
    """Return what machines that are kept cost more or less a month, and which."""
    changes = [reservation.monthly for reservation in reservations]
    prices = [change for change in changes if change is not None]
    missing = len(changes) - len(prices)
    noun = "reservation" if missing == 1 else "reservations"
    more = f"{missing} {noun} without a price" if missing else ""
    total = math.fsum(prices)
    price = f"{'-' if total < 0 else '+'}{usd(abs(total))} a month" if prices else ""
    what = " and ".join(part for part in (price, more) if part)
    named = first([_reserved_machines(reservation, quote) for reservation in reservations])
    return f"reservations, used or not: {what} ({named})"


def _reserved_machines(change: ReservationChange, quote: Quote) -> str:
    """Return a reservation's machines and price an hour, before and after."""
    old, new, kind = change.old, change.new, quote(change.either.machine_type)
    if old and new and (old.machine_type, old.zone) != (new.machine_type, new.zone):
        before, after = (
            f"{_number(e)} x {quote(e.machine_type)} in {quote(e.zone)}" for e in (old, new)
        )
        numbers = f"{before} → {after}"
    else:
        numbers = f"{_number(old)} → {_number(new)} x {kind}"
    hourly = [usd(reservation.hourly) if reservation else usd(0) for reservation in (old, new)]
    return f"{quote(change.either.name)} {numbers}, {hourly[0]} → {hourly[1]} an hour"


def _number(reservation: ReservationCost | None) -> str:
    """Return how many machines a reservation keeps."""
    return "0" if reservation is None else str(reservation.machines or "an unknown number")
