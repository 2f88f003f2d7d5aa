"""Waits for a job in the program: optional, with a deadline, separate from the submission.

A wait begins when the job's resource is in the state, and occupies neither a thread of the provider
nor a step of the engine. Except for ``ladder`` and ``idleStop``, a wait only reads: an interrupted
wait changes neither the job nor its record. The next ``pulumi up`` waits again.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from vertex_training.customjob.protocol.idle import SAMPLE, IdleFinding, IdleStop, goes_on
from vertex_training.customjob.protocol.ladder import CurrentRung, Ladder
from vertex_training.customjob.protocol.ports import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
)
from vertex_training.errors import (
    OperatorError,
    PreconditionFailedError,
    WaitDeadlineError,
    WaitError,
)

Goal = Literal["running", "succeeded"]

#: Goal -> states that fulfill the goal. A job can run and succeed between two polls.
FULFILLED_BY: Final[Mapping[Goal, frozenset[str]]] = {
    "running": SUCCEEDED | {"JOB_STATE_RUNNING"},
    "succeeded": SUCCEEDED,
}
#: Number of lines of a failed job's log to show.
TAIL_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Wait:
    """A job, the state to wait for, and a deadline."""

    job: str
    run: int
    goal: Goal
    deadline: float
    """Seconds from the start of the wait."""


@dataclass(frozen=True, slots=True)
class PollBackoff:
    """Pauses between two polls, in seconds. They grow by half from ``initial`` to ``maximum``."""

    initial: float = 0.5
    maximum: float = 10.0
    heartbeat: float = 300.0
    """Longest silence between two reports: CI systems end jobs that print nothing."""


@dataclass(frozen=True, slots=True)
class WaitPorts:
    """I/O of a wait. ``get_job`` and ``read_log_tail`` block, and run in threads."""

    get_job: Callable[[str], JobSnapshot | None]
    """Return a job by name; None if its record was deleted. Raises OperatorError."""
    read_log_tail: Callable[[str, int], Sequence[str]]
    """Return the last lines of a job's log. Raises OperatorError."""
    report: Callable[[str], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic
    connect_ladder: Callable[[], Ladder | None] = lambda: None
    """Return the ladder of a failed job; None without a ladder. Raises OperatorError."""
    connect_idle_stop: Callable[[], IdleStop | None] = lambda: None
    """Return the job's ``idleStop``; None without one. Raises OperatorError."""


class _IdleLook:
    """Checks a job by its ``idleStop``, once for each data point."""

    def __init__(self, wait: Wait, ports: WaitPorts) -> None:
        self._wait, self._ports = wait, ports
        self._stop: IdleStop | None = None
        self._connected, self._due, self._reported = False, 0.0, ""

    async def look(self, job: JobSnapshot) -> None:
        if job.state != RUNNING or not job.accelerators or self._ports.monotonic() < self._due:
            return
        self._due = self._ports.monotonic() + SAMPLE
        try:
            text = await asyncio.to_thread(self._check, job)
        except OperatorError as error:
            text = goes_on(error)
        if text and text != self._reported:
            self._ports.report(f"job {self._wait.job}: {text}")
        self._reported = text

    def _check(self, job: JobSnapshot) -> str:
        if not self._connected:
            self._stop, self._connected = self._ports.connect_idle_stop(), True
        if self._stop is None:
            return ""
        verdict = self._stop.look(job)
        if verdict.finding is IdleFinding.UNPROVEN:
            return verdict.goes_on
        reason = self._stop.stop(job, verdict)
        return f"{reason}: cancelled ({job.name})" if reason else ""

    async def reason(self, job: JobSnapshot) -> str:
        if job.short_state != "CANCELLED" or not job.accelerators:
            return ""
        try:
            return await asyncio.to_thread(self._recorded, job)
        except OperatorError as error:
            return f"the reason could not be read: {error}"

    def _recorded(self, job: JobSnapshot) -> str:
        stop = self._stop or self._ports.connect_idle_stop()
        return stop.reason(job) if stop else ""


async def wait_for_job(
    wait: Wait, name: str, ports: WaitPorts, backoff: PollBackoff = PollBackoff()
) -> JobSnapshot:
    """Wait until the job ``name`` reaches the state ``wait.goal``, and return the job.

    Cancels a provably idle job with ``idleStop``. If a job with a ladder got no machines, continues
    with the next rung.

    Raises:
        WaitError: the job ended otherwise (with the end of its log), or its record was deleted.
        WaitDeadlineError: the deadline has passed.
        OperatorError: the service did not answer.
    """
    began = ports.monotonic()
    reported_at, reported_state = began, ""
    pause, idle = backoff.initial, _IdleLook(wait, ports)
    while True:
        job = await _get_job(wait, name, ports)
        now = ports.monotonic()
        if job.state != reported_state or now - reported_at >= backoff.heartbeat:
            ports.report(_progress(wait, job, now - began))
            reported_at, reported_state = now, job.state
        if job.state in FULFILLED_BY[wait.goal]:
            return job
        if job.state in FAILED:
            rung, exhausted = await _climb(wait, job, ports)
            if rung and rung.job and rung.job.name != name:
                name, reported_state = rung.job.name, ""
                verb = "continues" if rung.moved else "is"
                ports.report(f"job {wait.job}: {_reason(job)}; {verb} on {rung} as {name}")
                continue
            why = f"No ladder rung is left: {exhausted}" if exhausted else await idle.reason(job)
            raise WaitError(await _failure_message(wait, job, ports, why))
        await idle.look(job)
        left = wait.deadline - (now - began)
        if left <= 0:
            verb = {"running": "start", "succeeded": "succeed"}[wait.goal]
            raise WaitDeadlineError(
                f"job '{wait.job}' did not {verb} before the deadline of "
                f"{format_duration(wait.deadline)}, and is {job.short_state}. The job continues "
                f"({job.name}); waiting again is safe."
            )
        await ports.sleep(min(pause, left))
        pause = min(pause * 1.5, backoff.maximum)


async def _get_job(wait: Wait, name: str, ports: WaitPorts) -> JobSnapshot:
    """Return the job. Raise WaitError if the record of the job was deleted."""
    try:
        job = await asyncio.to_thread(ports.get_job, name)
    except OperatorError as error:
        raise OperatorError(
            f"job '{wait.job}' ({name}) could not be read, and continues; waiting again is safe. "
            f"{error}"
        ) from None
    if job is None:
        raise WaitError(
            f"the record of job '{wait.job}' ({name}) was deleted, so its result is unknown. To "
            f"submit the job again, set run: {wait.run + 1} in the stack file; else remove wait."
        )
    return job


def _progress(wait: Wait, job: JobSnapshot, waited: float) -> str:
    line = f"job {wait.job}: {job.short_state}"
    return f"{line} after {format_duration(waited)}" if waited >= 1 else line


async def _climb(wait: Wait, job: JobSnapshot, ports: WaitPorts) -> tuple[CurrentRung | None, str]:
    """Return the current rung after submitting the next rung if needed, and all failures."""

    def climb() -> tuple[CurrentRung | None, str]:
        ladder = ports.connect_ladder()
        return (ladder.climb(), ladder.exhausted()) if ladder else (None, "")

    if not job.out_of_stock:
        return None, ""
    try:
        return await asyncio.to_thread(climb)
    except OperatorError as error:
        raise OperatorError(
            f"job '{wait.job}' ({job.name}): {_reason(job)}; its next ladder rung could not be "
            f"submitted. Wait again to retry. {error}"
        ) from None


def _reason(job: JobSnapshot) -> str:
    return job.reason or job.short_state


async def _failure_message(wait: Wait, job: JobSnapshot, ports: WaitPorts, why: str) -> str:
    reason = f": {job.reason}" if job.error else ""
    reason = f". {why[0].upper()}{why[1:]}" if why else reason
    message = (
        f"job '{wait.job}' is {job.short_state} ({job.name}){reason}. "
        f"Fix the job, or set run: {wait.run + 1} in the stack file to submit the job again."
    )
    try:
        lines = await asyncio.to_thread(ports.read_log_tail, job.name, TAIL_LINES)
    except OperatorError as error:
        return f"{message}\nThe job's log could not be read: {error}"
    if not lines:
        return f"{message}\nThe job's log is empty."
    heading = f"The last {len(lines)} lines of the job's log:"
    return "\n".join([message, heading, *(f"  {line}" for line in lines)])


def format_duration(seconds: float) -> str:
    """Return a duration as text: ``45s``, ``2m 5s``, ``3h 0m``.

    >>> format_duration(125)
    '2m 5s'
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    return f"{minutes // 60}h {minutes % 60}m"


def withdraw(
    jobs: JobService,
    name: str,
    *,
    delete_record: bool,
    before_cancel: Callable[[JobSnapshot], object] = bool,
    bound: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> JobSnapshot | None:
    """Cancel a job, wait for its end, and delete its record on request. Repeating it is safe.

    Returns the job, or None if the job had ended before. ``before_cancel`` gets a live job, and can
    raise an error to prevent the cancellation.

    Raises:
        OperatorError: the job did not end within ``bound`` seconds.
    """
    waited, pause = 0.0, 0.2
    job = jobs.get(name)
    ran = job is not None and job.state not in TERMINAL
    if job is not None and ran:
        before_cancel(job)
        jobs.cancel(name)
        job = jobs.get(name)
    while job is not None and job.state not in TERMINAL:
        if waited >= bound:
            raise OperatorError(
                f"{name} is still {job.short_state} {bound:.0f} s after its cancellation. The job "
                "remains in the stack. Run the same command again."
            )
        sleep(pause)
        waited, pause = waited + pause, min(pause * 2, 5.0)
        job = jobs.get(name)
    if job is not None and delete_record:
        jobs.delete(name)
    return job if ran else None


@dataclass(frozen=True, slots=True)
class CancelledJob:
    """A live job that was cancelled to send a new request."""

    job: str
    """Name of the job in the stack."""
    run: int
    name: str
    seconds: float
    """Duration of the job's code, in seconds."""
    output: str
    """Output directory; empty if missing."""

    @classmethod
    def of(cls, job: str, run: int, ended: JobSnapshot) -> CancelledJob:
        """Create the value from a job that has ended."""
        ran = (ended.ended - ended.started) / 1e9 if ended.started and ended.ended else 0.0
        return cls(job, run, ended.name, ran, ended.output)

    def __str__(self) -> str:
        """Return a sentence about the cancellation."""
        after = f" after {format_duration(self.seconds)}" if self.seconds else ""
        return f"job '{self.job}' (run {self.run}, {self.name}) was cancelled{after}"

    @property
    def in_vain(self) -> str:
        """Return an error text for a job that was cancelled in vain, with steps to repair it."""
        output = f" Its output is in {self.output}." if self.output else ""
        return (
            f"Before that, {self}, and no job runs now.{output} To submit the old job again, "
            "revert "
            "its files and run `pulumi up`."
        )


def release(intents: IntentStore, request_id: str, name: str) -> None:
    """Release the intent record of the withdrawn job ``name``; another process can then claim it.

    The record retains the job's name: the next claim reads that job first.
    """
    stored = intents.read(request_id)
    if stored is None or stored.record.state is not IntentState.DONE:
        return
    if stored.record.job_name != name:
        return  # the request was submitted again
    released = replace(stored.record, state=IntentState.RELEASED, owner=uuid.uuid4().hex)
    try:
        intents.write(released, stored.generation)
    except PreconditionFailedError:
        return  # another process claimed the request
