"""Withdraw a job that leaves the stack, and tell of one that was withdrawn in vain.

Imports neither Pulumi nor Google.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

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
    """Cancel a job, wait until it has ended, and delete its record if asked to. Repeatable.

    Returns the job that was cancelled, as it ended; None if it had ended by itself.
    ``before_cancel`` gets a job that has not ended, and may raise: then it is not cancelled.

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
                f"{name} is still {job.short_state} after {bound:.0f} s of cancelling. "
                "It stays in the stack; run the same command again."
            )
        sleep(pause)
        waited, pause = waited + pause, min(pause * 2, 5.0)
        job = jobs.get(name)
    if job is not None and delete_record:
        jobs.delete(name)
    return job if ran else None


#: Variable with a file for notes of jobs that were cancelled in vain; ``vt up`` sets it.
CANCELLED_JOBS: Final = "VT_CANCELLED_JOBS"


@dataclass(frozen=True, slots=True)
class CancelledJob:
    """A live job that was cancelled for a request that takes its place."""

    job: str
    """Its name in the stack."""
    run: int
    name: str
    seconds: float
    """Run time of its code."""
    output: str
    """Its output directory; empty if it has none."""

    @classmethod
    def of(cls, job: str, run: int, ended: JobSnapshot) -> CancelledJob:
        """The job as it ended."""
        ran = (ended.ended - ended.started) / 1e9 if ended.started and ended.ended else 0.0
        return cls(job, run, ended.name, ran, ended.output)

    def __str__(self) -> str:
        """Return the outcome, in a sentence."""
        after = f" after {format_duration(self.seconds)}" if self.seconds else ""
        return f"job '{self.job}' (run {self.run}, {self.name}) was cancelled{after}"

    @property
    def in_vain(self) -> str:
        """The same with the way back, for who gets no more than an error."""
        output = f" Its output is in {self.output}." if self.output else ""
        return (
            f"For it {self}, and nothing runs now.{output} To bring that back, put its files back "
            "as they were and run `pulumi up`."
        )


def release(intents: IntentStore, request_id: str, name: str) -> None:
    """Release the intent record of the withdrawn job ``name``: its request can be claimed again.

    The record keeps the job's name: the next claim reads that job first. Repeatable.
    """
    stored = intents.read(request_id)
    if stored is None or stored.record.state is not IntentState.DONE:
        return
    if stored.record.job_name != name:
        return  # submitted again since
    released = replace(stored.record, state=IntentState.RELEASED, owner=uuid.uuid4().hex)
    try:
        intents.write(released, stored.generation)
    except PreconditionFailedError:
        return  # another process has claimed the request meanwhile
