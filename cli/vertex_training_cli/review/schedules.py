"""Schedules of a plan: when each submits, how often, and what a month of it can cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost, usd
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.settings import cron
from vertex_training_cli.engine.fields import FieldDifference, diff_fields
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.jobs import differences, images_of, job_name, job_spec, request
from vertex_training_cli.review.risk import Quote

ACTIONS: Final = {"create": "begin", "update": "change", "delete": "end"}
FATES: Final = {
    "begin": "begins: the first slot after the deployment is the first that is submitted",
    "change": "changes: the next slot is submitted as it is then",
    "end": "ends: nothing is submitted any more, and the job of a slot that runs is cancelled",
    "keep": "unchanged",
}
#: Slots that a report names.
SHOWN: Final = 5
#: What nobody submits is no slot: said where a schedule is.
TIMER: Final = (
    "`vt jobs advance` submits slots, whenever a timer runs it: without one, nothing runs. Slots "
    "are named in UTC, as seen from when this was written."
)


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """A schedule after the plan; before it, if it ends."""

    name: str
    """The job's name in the stack."""
    action: str
    """A key of ``FATES``."""
    words: str
    """When, in words."""
    paused: bool
    missed: str
    """What becomes of missed slots: latest, skip or all."""
    slots: tuple[str, ...]
    """The next ones; none while it is paused, or after its end."""
    most_a_month: int
    worst_month_usd: float | None
    """Of slots that all run until their timeout; None without a price."""
    account: str
    images: tuple[str, ...]
    differences: tuple[FieldDifference, ...]

    @property
    def cost(self) -> str:
        """What a month of it can cost, in words."""
        if self.paused:
            return f"nothing while it is paused, {usd(self.worst_month_usd)} a month afterwards"
        return f"at most {usd(self.worst_month_usd)} a month ({self.most_a_month} slots)"


def schedule_changes(plan: Plan, now: datetime | None = None) -> tuple[ScheduleChange, ...]:
    """All schedules of a plan by name; their next slots are those after ``now``."""
    moment = now or datetime.now(UTC)
    found = (_change(step, moment) for step in plan.steps if step.type == SCHEDULE)
    return tuple(sorted(found, key=lambda each: each.name))


def _change(step: Step, now: datetime) -> ScheduleChange:
    inputs, action = step.inputs, ACTIONS.get(step.op, "keep")
    schedule, message = as_mapping(inputs.get("schedule")), request(inputs)
    calendar = _calendar(schedule)
    paused = bool(schedule.get("paused"))
    stands = calendar is not None and not paused and action != "end"
    slots = calendar.next(now, SHOWN) if calendar and stands else []
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
    """The calendar of inputs, which may be somebody else's."""
    line, zone = str(schedule.get("cron", "")), str(schedule.get("timeZone", ""))
    return None if cron.problem(line) or zone not in cron.zones() else cron.Calendar(line, zone)


def _differences(step: Step) -> list[FieldDifference]:
    """What changes in the calendar, then in what every slot submits."""
    if step.old is None or step.new is None or not step.changes:
        return []
    both = (as_mapping(state.inputs.get("schedule")) for state in (step.old, step.new))
    return [*diff_fields(*both), *differences(step)]


def costs_in_words(changes: Sequence[ScheduleChange], quote: Quote) -> list[str]:
    """What schedules that begin or change can cost."""
    changed = (each for each in changes if each.action in ("begin", "change"))
    return [f"schedule {quote(each.name)}: {each.cost}" for each in changed]


def ends_in_words(changes: Sequence[ScheduleChange], quote: Quote) -> list[str]:
    """Schedules of which nothing is submitted any more."""
    return [f"schedule {quote(each.name)} ends" for each in changes if each.action == "end"]
