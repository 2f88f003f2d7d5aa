"""Slots of a schedule: due, waiting and missed ones, and the end of the schedule. Pure.

The turn record of the job (``vertex_training.customjob.protocol.turn``) tells how far a schedule
is: it names the last slot that could be sent. Whoever looks decides the same, and the submission
protocol lets one process send. So a look may be repeated, late, concurrent, or killed anywhere:

=====================  =============================================================
slots are considered   those after ``since`` and after the slot of the turn
once more              the slot of the turn, if its record does not say that its job exists
waits                  a slot whose predecessor's job has not ended
=====================  =============================================================

Time is the store's, not the machine's. If it goes back, slots that had their turn stay in the past.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

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
from vertex_training.customjob.protocol.withdrawal import withdraw
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PreconditionFailedError,
)
from vertex_training.schedules.deployed import DeployedSchedule
from vertex_training.settings.cron import UTC, name_of, time_of

#: How late a slot may be that ``missed: skip`` does not leave out.
IN_TIME: Final = datetime.timedelta(hours=1)
#: Begins like a slot, so that all slots before it are past; no job carries it.
_REMOVED: Final = "removed"
_ATTEMPTS: Final = 20


class Prepare(Protocol):
    """Completes a request by what the cloud has, such as the stack's TensorBoard."""

    def __call__(self, request: SubmissionRequest, account: str, /) -> SubmissionRequest:
        """The request that is sent."""
        ...


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
    """Outcome of one slot, or of a schedule that has nothing to do."""

    done: str
    """submitted, adopted, due (it would be submitted), waits, missed, failed, idle or paused."""
    slot: str
    reason: str
    job: str = ""
    """Resource name of its job."""


def advance(
    schedule: DeployedSchedule, ports: SchedulePorts, now: float, *, dry_run: bool = False
) -> Iterator[Outcome]:
    """Submit what is due at ``now``, the store's time in seconds. Repeatable.

    Raises:
        OperatorError: records or jobs cannot be read; nothing was sent.
    """
    if schedule.paused:
        yield Outcome("paused", "", "paused: no slots")
        return
    moment = datetime.datetime.fromtimestamp(now, tz=UTC)
    current, previous = _current(schedule, ports)
    if current > name_of(moment):
        place = f"gs://{schedule.control_bucket}/{schedule.records}turns/{schedule.turn_key}.json"
        text = f"its turn is still to come: nothing is submitted before. Somebody wrote {place}?"
        yield Outcome("failed", current, text)
        return
    due = _due(schedule, ports, current, moment)
    asked = _wanted(schedule.missed, due, moment)
    known = {slot: _recorded(schedule, ports, slot) for slot in asked}
    if left := [s for s in due if s not in known and schedule.missed != "all"]:
        since = f" of {len(left)} since {left[0]}" if left[1:] else ""
        yield Outcome("missed", left[-1], f"missed{since}, and left out ({schedule.missed})")
    yield from filter(None, known.values())
    wanted = [slot for slot, outcome in known.items() if outcome is None]
    if not wanted:
        [after] = schedule.next(moment, 1)  # a line whose time never comes is no schedule
        yield Outcome("idle", "", f"next {name_of(after)}: {schedule.calendar.words}")
    for slot in wanted:
        if previous is not None and slot != current and previous.state not in TERMINAL:
            text = f"waits: slot {current} is {previous.short_state}" if current else "waits"
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
    """Return slots that are due at ``now`` by ``old``, and that nobody submits after ``new``.

    ``ports`` is called only where a change can drop slots: another calendar, or a pause.

    Raises:
        OperatorError: records cannot be read.
    """
    if old.paused or (old.calendar == new.calendar and not new.paused):
        return []
    moment, opened = datetime.datetime.fromtimestamp(now, tz=UTC), ports()
    current, _ = _current(old, opened)
    wanted = _wanted(old.missed, _due(old, opened, current, moment), moment)
    return [slot for slot in wanted if _recorded(old, opened, slot) is None]


def _current(schedule: DeployedSchedule, ports: SchedulePorts) -> tuple[str, JobSnapshot | None]:
    """The slot of the turn and the job of the turn's request; empty and None without."""
    turn = ports.intents.read_turn(schedule.turn_key)
    if turn is None:
        return "", None
    stored = ports.intents.read(turn.request_id)
    name = stored.record.job_name if stored else ""
    return slot_of(turn.request_id), ports.jobs.get(name) if name else None


def _due(
    schedule: DeployedSchedule, ports: SchedulePorts, current: str, now: datetime.datetime
) -> list[str]:
    """The slots that are due, the oldest first."""
    begin = max(schedule.since, current)
    result = [name_of(slot) for slot in schedule.calendar.due(time_of(begin), now)]
    is_slot = ports.intents.read(schedule.request_id(current)) if current > schedule.since else None
    if is_slot is not None and is_slot.record.state is not IntentState.DONE:
        result.insert(0, current)
    return result


def _recorded(schedule: DeployedSchedule, ports: SchedulePorts, slot: str) -> Outcome | None:
    """Return the record of a slot that has a job although the turn does not name it; else None.

    Somebody deleted the turn, or wrote the record.
    """
    id_ = schedule.request_id(slot)
    stored = ports.intents.read(id_)
    if stored is None or stored.record.state is not IntentState.DONE:
        return None
    job = ports.jobs.get(stored.record.job_name)
    if job is not None and job.request_id == id_:
        return Outcome("adopted", slot, "was submitted already", job.name)
    place = f"gs://{schedule.control_bucket}/{schedule.records}submissions/{id_}.json"
    text = f"not submitted: its record names no job of it. Somebody wrote {place}?"
    return Outcome("failed", slot, text)


def _wanted(missed: str, due: list[str], now: datetime.datetime) -> list[str]:
    """Those of the slots that are due that are to be submitted."""
    if missed == "all":
        return due
    newest = due[-1:]
    return newest if missed == "latest" else [s for s in newest if now - time_of(s) <= IN_TIME]


def _submit(
    schedule: DeployedSchedule, ports: SchedulePorts, slot: str
) -> tuple[Outcome, JobSnapshot | None]:
    """Submit one slot; a refusal is an outcome."""
    try:
        request = ports.prepare(schedule.submission(slot), schedule.account)
        job, adopted = submit(request, ports.jobs, ports.intents, ports.timing, ports.environment)
    except (NotSubmittedError, InDoubtError, JobRefusedError) as error:
        return Outcome("failed", slot, str(error)), None
    text = "was submitted already" if adopted else "submitted"
    return Outcome("adopted" if adopted else "submitted", slot, text, job.name), job


def remove(
    schedule: DeployedSchedule,
    ports: SchedulePorts,
    sleep: Callable[[float], None] = time.sleep,
) -> JobSnapshot | None:
    """End a schedule: no slot is sent after it, and the job of one that runs is cancelled.

    Takes the turn for all slots before now, so that a process that still has the old state loses
    it. Returns the job that was cancelled. Repeatable.

    Raises:
        OperatorError: records or jobs cannot be read or written, or a job does not end.
    """
    cancelled: JobSnapshot | None = None
    for _ in range(_ATTEMPTS):
        turn = ports.intents.read_turn(schedule.turn_key)
        if turn is not None and not slot_of(turn.request_id):
            return cancelled  # the job's, which has no schedule any more
        number, generation = (1, 0) if turn is None else (turn.number + 1, turn.generation)
        try:
            if turn is not None:
                cancelled = _end(schedule, ports, turn.request_id, sleep) or cancelled
            barrier = f"{name_of(_moment(ports))}-{_REMOVED}"
            ports.intents.write_turn(schedule.turn_key, barrier, number, generation)
        except PreconditionFailedError:
            continue  # a slot was taken meanwhile
        except OperatorError:
            if turn is None:
                return None  # nothing was ever sent, and nothing can be: the bucket is gone
            raise
        return cancelled
    raise OperatorError(f"the schedule of job '{schedule.job}' is written by others as well.")


def _end(
    schedule: DeployedSchedule,
    ports: SchedulePorts,
    request_id: str,
    sleep: Callable[[float], None],
) -> JobSnapshot | None:
    """Wait until the slot's request cannot act, and cancel what came of it."""
    request = schedule.submission(slot_of(request_id))
    turn = SubmissionTurn(request, ports.jobs, ports.intents, ports.timing, ports.environment)
    cancelled = None
    for job in turn.jobs_once_settled(request_id):
        keep = schedule.on_delete == "keep"
        ended = withdraw(ports.jobs, job.name, delete_record=not keep, sleep=sleep)
        cancelled = ended or cancelled
    return cancelled


def _moment(ports: SchedulePorts) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ports.intents.now(), tz=UTC)
