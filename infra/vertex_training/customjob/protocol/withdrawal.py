"""Withdraws a job that leaves the stack, and reports a job that was cancelled in vain.

Imports neither Pulumi nor Google.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from vertex_training.customjob.protocol.ports import (
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
)
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training.errors import OperatorError, PreconditionFailedError


def withdraw(
    jobs: JobService,
    name: str,
    *,
    delete_record: bool,
    before_cancel: Callable[[JobSnapshot], object] = bool,
    bound: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> JobSnapshot | None:
    """Cancel a job, wait for its end, and delete its record on request. Repeatable.

    Returns the cancelled job after its end; None if it had ended before. ``before_cancel`` gets a
    live job, and can raise to prevent the cancellation.

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
    """Release the intent record of the withdrawn job ``name`` for a new claim. Repeatable.

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
