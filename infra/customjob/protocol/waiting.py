"""Waiting for a job, in the program: opt-in, bounded, and never a part of its submission.

A wait begins when the job's resource is in the state, and holds neither a thread of the provider
nor a step of the engine. It only looks: killed, interrupted or past its deadline, it leaves the job
and its record as they are, and the next ``pulumi up`` waits again, or says at once how the job
ended. This module knows neither Pulumi nor Google.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from infra.customjob.protocol.ports import FAILED, SUCCEEDED, JobRecord
from infra.errors import OperatorError, WaitDeadlineError, WaitError

Goal = Literal["running", "succeeded"]

#: States that fulfil a goal. A job may have succeeded before anybody saw it run.
FULFILS = {"running": SUCCEEDED | {"JOB_STATE_RUNNING"}, "succeeded": SUCCEEDED}
#: Lines of the log that are shown of a job that failed.
TAIL_LINES = 20


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for, and for how long: ``deadline`` in seconds, from the start of the wait."""

    job: str
    run: int
    goal: Goal
    deadline: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look, in seconds. The pause grows by half from ``first`` to ``longest``."""

    first: float = 0.5
    longest: float = 10.0
    heartbeat: float = 300.0
    """How long to be silent at most: CI systems end jobs that say nothing."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a wait asks of the outside. ``look`` and ``tail`` block; they run in threads."""

    look: Callable[[str], JobRecord | None]
    """The job of this name, or None if its record is gone. Raises OperatorError."""
    tail: Callable[[str, int], Sequence[str]]
    """The last lines of its log. Raises OperatorError."""
    say: Callable[[str], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic


async def wait(wanted: Wait, name: str, outlook: Outlook, pace: Pace = Pace()) -> JobRecord:
    """Return when job ``name`` fulfils the goal.

    Raises:
        WaitError: it ended otherwise (with the end of its log), its record is gone, or the
            deadline passed. Nothing was done to the job.
        OperatorError: the service did not answer.
    """
    began = outlook.monotonic()
    said_at, said = began, ""
    pause = pace.first
    while True:
        record = await _look(wanted, name, outlook)
        if record is None:
            raise WaitError(
                f"the record of job '{wanted.job}' ({name}) was deleted, so nobody can tell how "
                f"it ended. Set run: {wanted.run + 1} in the stack file to submit it once more, or "
                "remove wait."
            )
        now = outlook.monotonic()
        if record.state != said or now - said_at >= pace.heartbeat:
            outlook.say(_progress(wanted, record, now - began))
            said_at, said = now, record.state
        if record.state in FULFILS[wanted.goal]:
            return record
        if record.state in FAILED:
            raise WaitError(await _how_it_ended(wanted, record, outlook))
        left = wanted.deadline - (now - began)
        if left <= 0:
            raise WaitDeadlineError(_late(wanted, record))
        await outlook.sleep(min(pause, left))
        pause = min(pause * 1.5, pace.longest)


async def _look(wanted: Wait, name: str, outlook: Outlook) -> JobRecord | None:
    """The job. Raises OperatorError that says which job is meant, and that nothing became of it."""
    try:
        return await asyncio.to_thread(outlook.look, name)
    except OperatorError as error:
        raise OperatorError(
            f"job '{wanted.job}' ({name}) cannot be looked at, and goes on; to wait for it again "
            f"is safe. {error}"
        ) from None


def _progress(wanted: Wait, record: JobRecord, waited: float) -> str:
    line = f"job {wanted.job}: {_word(record.state)}"
    return f"{line} after {readable(waited)}" if waited >= 1 else line


async def _how_it_ended(wanted: Wait, record: JobRecord, outlook: Outlook) -> str:
    reason = f": {record.error.rstrip('.')}" if record.error else ""
    told = (
        f"job '{wanted.job}' is {_word(record.state)} ({record.name}){reason}. "
        f"Mend it, or set run: {wanted.run + 1} in the stack file to submit it once more."
    )
    try:
        lines = await asyncio.to_thread(outlook.tail, record.name, TAIL_LINES)
    except OperatorError as error:
        return f"{told}\nIts log could not be read: {error}"
    if not lines:
        return f"{told}\nIts log is empty."
    return "\n".join([told, f"The last {len(lines)} lines of its log:", *(f"  {x}" for x in lines)])


def _late(wanted: Wait, record: JobRecord) -> str:
    goal = {"running": "to run", "succeeded": "to succeed"}[wanted.goal]
    return (
        f"job '{wanted.job}' is {_word(record.state)}, and had {readable(wanted.deadline)} "
        f"{goal} (deadline). It goes on ({record.name}); to wait for it again is safe."
    )


def readable(seconds: float) -> str:
    """A duration as people say it: ``45s``, ``2m 5s``, ``3h 0m``.

    >>> readable(125)
    '2m 5s'
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    return f"{minutes // 60}h {minutes % 60}m"


def _word(state: str) -> str:
    return state.removeprefix("JOB_STATE_")
