"""The machines a job runs on: reservations it takes, and the waiting for machines."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from localgcp.errors import JobCancelledError, RpcCode, StartRefusedError
from localgcp.faults.jobs import JobFaults, stockout_message
from localgcp.inventory.store import Store
from localgcp.vertex import capacity
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: Default of ``scheduling.maxWaitDuration``, in seconds (T:custom_job).
_DEFAULT_WAIT: Final = 24 * 3600.0


def wait_for_machines(
    job: JobRecord, faults: JobFaults, cancelled: threading.Event, report: Callable[[str], None]
) -> None:
    """Return when there are machines: at once, but for a fault that says otherwise.

    A FLEX_START job waits until there are some, or for ``maxWaitDuration``.
    Raises StartRefusedError, and JobCancelledError if it is cancelled meanwhile.
    """
    fault = faults.stockout(job)
    if fault is None:
        return
    text = stockout_message(job.region)
    scheduling = job.spec.get("scheduling", {})
    wait, limit = fault.seconds, None
    if scheduling.get("strategy") == "FLEX_START":
        limit = max_wait(scheduling)
        wait = math.inf if wait is None else wait
    if wait is None:
        raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)
    report(f"{text} Waiting.")
    longest = min(wait, math.inf if limit is None else limit)
    if cancelled.wait(None if longest == math.inf else longest):
        raise JobCancelledError
    if limit is not None and limit < wait:
        text = f"{text} None came within scheduling.maxWaitDuration ({limit:g}s)."
        raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)


def max_wait(scheduling: Mapping[str, Any]) -> float:
    """Seconds of ``maxWaitDuration``; ``0s`` means for ever."""
    text = scheduling.get("maxWaitDuration", "")
    seconds = float(text.removesuffix("s")) if text else _DEFAULT_WAIT
    return seconds or math.inf


def claim_machines(
    store: Store, jobs: JobTable, job: JobRecord, report: Callable[[str], None]
) -> bool:
    """Take machines of the reservations the job may use; False if it has to wait for some."""
    plan = capacity.plan(store, jobs, job)
    if plan.short or not jobs.claim(job.job_id, plan.wanted, plan.limits):
        if job.state is JobState.QUEUED:  # said once, not at every try
            report(f"waiting for machines, the reservation is used up: {plan.short}")
        return False
    for note in plan.notes:
        report(note)
    return True
