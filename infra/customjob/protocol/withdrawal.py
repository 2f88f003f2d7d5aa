"""The other end of a submission: a job leaves the stack. Knows neither Pulumi nor Google."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from infra.customjob.protocol.ports import TERMINAL, IntentStore, JobService, State
from infra.errors import OperatorError, PreconditionFailedError


def withdraw(
    jobs: JobService,
    name: str,
    *,
    delete_record: bool,
    bound: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Cancel a job, wait until it has ended, and delete its record if asked to. Repeatable.

    Raises:
        OperatorError: it did not end within ``bound`` seconds.
    """
    waited, pause = 0.0, 0.2
    record = jobs.get(name)
    if record is not None and record.state not in TERMINAL:
        jobs.cancel(name)
        record = jobs.get(name)
    while record is not None and record.state not in TERMINAL:
        if waited >= bound:
            state = record.state.removeprefix("JOB_STATE_")
            raise OperatorError(
                f"{name} is still {state} after {bound:.0f} s of cancelling. "
                "It stays in the stack; run the same command again."
            )
        sleep(pause)
        waited, pause = waited + pause, min(pause * 2, 5.0)
        record = jobs.get(name)
    if record is not None and delete_record:
        jobs.delete(name)


def release(intents: IntentStore, request_id: str, name: str) -> None:
    """Free the record of the withdrawn job ``name``, so that its request may be claimed again.

    It still names the job: who claims it asks for that one first. Repeatable.
    """
    stored = intents.read(request_id)
    if stored is None or stored.record.state is not State.DONE:
        return
    if stored.record.job_name != name:
        return  # submitted again since
    freed = replace(stored.record, state=State.RELEASED, owner=uuid.uuid4().hex)
    try:
        intents.write(freed, stored.generation)
    except PreconditionFailedError:
        return  # claimed meanwhile: it is no longer ours to free
