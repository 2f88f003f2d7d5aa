"""Rows of the table of Batch's jobs, as its service writes them, and a clock that stands."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from localgcp.batch.records import BatchJob, State
from tests.unit.localcloud.conftest import PROJECT, TRAINER

PLACE = "projects/1/locations/us-central1/jobs"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME = "2026-01-02T03:04:05.000000Z"


def batch_row(
    job_id: str = "j",
    state: State = State.QUEUED,
    *,
    group: Any = None,
    policy: Any = None,
    locations: tuple[str, ...] = ("regions/us-central1",),
    body: Any = None,
    time: str = TIME,
    **spec: Any,
) -> BatchJob:
    """A job of one task whose uid is ``u-`` and its id."""
    resources = {"cpuMilli": "2000", "memoryMib": "2000"}
    of_task = {"runnables": [], "computeResource": resources, **spec}
    whole = {
        "taskGroups": [
            {"taskCount": "1", "parallelism": "1", "taskSpec": of_task, **(group or {})},
        ],
        "allocationPolicy": {
            "serviceAccount": {"email": TRAINER},
            "location": {"allowedLocations": [*locations]},
            "instances": [{"policy": policy or {}}],
        },
        **(body or {}),
    }
    return BatchJob(
        f"{PLACE}/{job_id}", f"u-{job_id}", PROJECT, "us-central1", whole, state, [], time, time
    )
