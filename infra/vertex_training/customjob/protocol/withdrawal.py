"""Withdraw a job that leaves the stack. Imports neither Pulumi nor Google."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from vertex_training.customjob.protocol.ports import (
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
)
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
