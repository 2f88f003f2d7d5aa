"""The steps of ``vt jobs advance``: submit due slots of schedules, report jobs that are late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.errors import OperatorError
from vertex_training.schedules import slots
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import connect
from vertex_training.schedules.slots import Outcome
from vertex_training_cli.advance.tick import Action, Tick
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: How long a job may wait for its machines before that is worth a line.
PENDING: Final = timedelta(hours=2)
#: How long after its timeout a job should have ended.
GRACE: Final = timedelta(minutes=30)
#: Of a job without a timeout: customJobs.scheduling.timeout in the API's reference.
DEFAULT_TIMEOUT: Final = timedelta(days=7)
_WAITING: Final = ("QUEUED", "PENDING")


def submit_due(tick: Tick) -> Iterator[Action]:
    """Submit what is due, by the rules of ``vertex_training.schedules.slots``.

    A schedule that cannot be advanced keeps no other one from it.
    """
    for schedule in deployed_schedules(tick.deployment, SCHEDULE):
        try:
            for outcome in _outcomes(schedule, tick):
                yield _action(schedule, outcome)
        except OperatorError as error:
            yield _action(schedule, Outcome("failed", "", str(error)))


def _outcomes(schedule: DeployedSchedule, tick: Tick) -> Iterator[Outcome]:
    ports = connect(schedule)
    # To read the store's time is to write an object.
    moment = tick.at or (tick.now if tick.dry_run else None)
    now = moment.timestamp() if moment else ports.intents.now()
    yield from slots.advance(schedule, ports, now, dry_run=tick.dry_run)


def _action(schedule: DeployedSchedule, outcome: Outcome) -> Action:
    return Action(
        "schedule",
        schedule.job,
        outcome.done,
        redact(outcome.reason),
        outcome.job,
        outcome.slot,
        failed=outcome.done == "failed",
    )


def report_late(tick: Tick) -> Iterator[Action]:
    """A line for each job that is queued for long, or runs beyond its timeout."""
    for job in tick.live:
        if text := _late(job, tick.now):
            yield Action("late", view.title(job), "late", text, job.name)


def _late(job: AnyJob, now: datetime) -> str:
    created: Any = job.create_time
    started: Any = job.start_time
    state = view.state(job)
    if state in _WAITING and created and now - created > PENDING:
        return f"{state} for {_words(now - created)}"
    timeout: Any = view.spec_of(job).scheduling.timeout or DEFAULT_TIMEOUT
    if started and not view.is_tuning(job) and now - started > timeout + GRACE:
        return f"{state} for {_words(now - started)}, its timeout is {_words(timeout)}"
    return ""


def _words(span: timedelta) -> str:
    return format_duration(span.total_seconds())
