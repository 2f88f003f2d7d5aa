"""Due, waiting and missed times (slots) of a schedule, and the end of the schedule.

The job's turn record (``vertex_training.customjob.protocol.turn``) has the progress of a schedule:
the last slot that could be sent. All processes come to the same decision, and the submission
protocol lets one process send. So a process can be late, concurrent, repeated or killed:

===================  =============================================================
new slots            slots after ``since`` and after the slot of the turn
repeated slot        the slot of the turn, if its record has no job
waiting slot         a slot whose predecessor's job has not ended
===================  =============================================================

Time is the store's time, not the machine's. If time goes back, past slots remain past.
"""

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.protocol.ports import (
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
    ProcessEnvironment,
    SubmissionRequest,
    Timing,
    slot_of,
)
from vertex_training.customjob.protocol.submission import submit
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.customjob.protocol.waiting import withdraw
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PreconditionFailedError,
)
from vertex_training.schedules.deployed import DeployedSchedule
from vertex_training.settings.cron import UTC, name_of, time_of

#: Maximum delay after a scheduled time at which ``missed: skip`` still submits the job.
IN_TIME: Final = datetime.timedelta(hours=1)
#: End of a request id that ends a schedule. The id begins like a slot, later than all other slots.
_REMOVED: Final = "removed"
_ATTEMPTS: Final = 20


#: Completes a request with values from the cloud, like a TensorBoard instance, as an account.
Prepare = Callable[[SubmissionRequest, str], SubmissionRequest]


@dataclass(frozen=True, slots=True)
class SchedulePorts:
    """Services that a schedule uses."""

    jobs: JobService
    intents: IntentStore
    prepare: Prepare = lambda request, _account: request
    timing: Timing = Timing()
    environment: ProcessEnvironment = ProcessEnvironment()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result for a scheduled time or, with an empty ``slot``, for the whole schedule."""

    done: str
    """submitted, adopted, due (would be submitted), waits, missed, failed, idle or paused."""
    slot: str
    reason: str
    job: str = ""
    """Resource name of the job for the scheduled time."""


def advance(
    schedule: DeployedSchedule, ports: SchedulePorts, now: float, *, dry_run: bool = False
) -> Iterator[Outcome]:
    """Submit jobs for the times due at ``now`` (the store's time in seconds). Repeatable.

    Raises:
        OperatorError: records or jobs cannot be read; nothing was sent.
    """
    if schedule.paused:
        yield Outcome("paused", "", "the schedule is paused")
        return
    moment = datetime.datetime.fromtimestamp(now, tz=UTC)
    current, previous = _current(schedule, ports)
    if current > name_of(moment):
        place = f"gs://{schedule.control_bucket}/{schedule.records}turns/{schedule.turn_key}.json"
        text = f"nothing is submitted: slot {current} is in the future. Check who wrote {place}"
        yield Outcome("failed", current, text)
        return
    due = _due(schedule, ports, current, moment)
    selected = _selected(schedule.missed, due, moment)
    known = {slot: _recorded(schedule, ports, slot) for slot in selected}
    if left := [s for s in due if s not in known and schedule.missed != "all"]:
        since = f", the last of {len(left)} since {left[0]}" if left[1:] else ""
        text = f"missed{since}; not submitted (missed: {schedule.missed})"
        yield Outcome("missed", left[-1], text)
    yield from filter(None, known.values())
    unsent = [slot for slot, outcome in known.items() if outcome is None]
    if not unsent:
        [after] = schedule.next(moment, 1)  # valid cron lines always have a next slot
        yield Outcome("idle", "", f"next start {name_of(after)}: {schedule.calendar.words}")
    for slot in unsent:
        if previous is not None and slot != current and previous.state not in TERMINAL:
            text = "waits for the previous job"
            if current:
                text = f"waits for the job of {current}, which is {previous.short_state}"
            yield Outcome("waits", slot, text, previous.name)
            return
        if dry_run:
            yield Outcome("due", slot, "would be submitted")
            return
        outcome, previous = _submit(schedule, ports, slot)
        current = slot
        yield outcome
        if outcome.done == "failed":
            return


def dropped(
    old: DeployedSchedule, new: DeployedSchedule, ports: Callable[[], SchedulePorts], now: float
) -> list[str]:
    """Return the times of ``old`` due at ``now`` for which ``new`` will not submit a job.

    Calls ``ports`` only if the calendar changed or the schedule is paused. Raises OperatorError.
    """
    if old.paused or (old.calendar == new.calendar and not new.paused):
        return []
    moment, opened = datetime.datetime.fromtimestamp(now, tz=UTC), ports()
    current, _ = _current(old, opened)
    selected = _selected(old.missed, _due(old, opened, current, moment), moment)
    return [slot for slot in selected if _recorded(old, opened, slot) is None]


def _current(schedule: DeployedSchedule, ports: SchedulePorts) -> tuple[str, JobSnapshot | None]:
    """Return slot and job of the request with the turn; empty and None without a turn."""
    turn = ports.intents.read_turn(schedule.turn_key)
    if turn is None:
        return "", None
    stored = ports.intents.read(turn.request_id)
    name = stored.record.job_name if stored else ""
    return slot_of(turn.request_id), ports.jobs.get(name) if name else None


def _due(
    schedule: DeployedSchedule, ports: SchedulePorts, current: str, now: datetime.datetime
) -> list[str]:
    begin = max(schedule.since, current)
    result = [name_of(slot) for slot in schedule.calendar.due(time_of(begin), now)]
    is_slot = ports.intents.read(schedule.request_id(current)) if current > schedule.since else None
    if is_slot is not None and is_slot.record.state is not IntentState.DONE:
        result.insert(0, current)
    return result


def _recorded(schedule: DeployedSchedule, ports: SchedulePorts, slot: str) -> Outcome | None:
    """Return the outcome of a slot with a job that only its own record contains, or None."""
    id_ = schedule.request_id(slot)
    stored = ports.intents.read(id_)
    if stored is None or stored.record.state is not IntentState.DONE:
        return None
    job = ports.jobs.get(stored.record.job_name)
    if job is not None and job.request_id == id_:
        return Outcome("adopted", slot, "was already submitted", job.name)
    place = f"gs://{schedule.control_bucket}/{schedule.records}submissions/{id_}.json"
    text = f"not submitted: {place} names a job of another request. Check who wrote this object"
    return Outcome("failed", slot, text)


def _selected(missed: str, due: list[str], now: datetime.datetime) -> list[str]:
    if missed == "all":
        return due
    newest = due[-1:]
    return newest if missed == "latest" else [s for s in newest if now - time_of(s) <= IN_TIME]


def _submit(
    schedule: DeployedSchedule, ports: SchedulePorts, slot: str
) -> tuple[Outcome, JobSnapshot | None]:
    try:
        request = ports.prepare(schedule.submission(slot), schedule.account)
        job, adopted = submit(request, ports.jobs, ports.intents, ports.timing, ports.environment)
    except (NotSubmittedError, InDoubtError, JobRefusedError) as error:
        return Outcome("failed", slot, str(error)), None
    text = "was already submitted" if adopted else "submitted"
    return Outcome("adopted" if adopted else "submitted", slot, text, job.name), job


def remove(
    schedule: DeployedSchedule,
    ports: SchedulePorts,
    sleep: Callable[[float], None] = time.sleep,
) -> JobSnapshot | None:
    """End a schedule; cancel and return the last job that the schedule submitted. Repeatable.

    Acquires the turn for all past times, so that a process with the old state cannot submit.

    Raises:
        OperatorError: records or jobs cannot be read or written, or a job does not end.
    """
    cancelled: JobSnapshot | None = None
    for _ in range(_ATTEMPTS):
        turn = ports.intents.read_turn(schedule.turn_key)
        if turn is not None and not slot_of(turn.request_id):
            return cancelled  # the turn belongs to the job, which has no schedule any more
        number, generation = (1, 0) if turn is None else (turn.number + 1, turn.generation)
        try:
            if turn is not None:
                cancelled = _end(schedule, ports, turn.request_id, sleep) or cancelled
            now = datetime.datetime.fromtimestamp(ports.intents.now(), tz=UTC)
            barrier = f"{name_of(now)}-{_REMOVED}"
            ports.intents.write_turn(schedule.turn_key, barrier, number, generation)
        except PreconditionFailedError:
            continue  # a slot was submitted meanwhile
        except OperatorError:
            if turn is None:
                return None  # the bucket does not exist: nothing was or can be sent
            raise
        return cancelled
    raise OperatorError(
        f"other processes are changing the schedule of job '{schedule.job}'. Run the same command "
        "again."
    )


def _end(
    schedule: DeployedSchedule,
    ports: SchedulePorts,
    request_id: str,
    sleep: Callable[[float], None],
) -> JobSnapshot | None:
    """Wait until the request of a slot cannot create more jobs; cancel its jobs."""
    request = schedule.submission(slot_of(request_id))
    turn = SubmissionTurn(request, ports.jobs, ports.intents, ports.timing, ports.environment)
    cancelled = None
    for job in turn.jobs_once_settled(request_id):
        keep = schedule.on_delete == "keep"
        ended = withdraw(ports.jobs, job.name, delete_record=not keep, sleep=sleep)
        cancelled = ended or cancelled
    return cancelled
