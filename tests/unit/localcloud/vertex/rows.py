"""Rows of the job table, as the service writes them."""

from __future__ import annotations

from typing import Any

from localgcp.inventory.store import project_number
from localgcp.vertex.records import JobRecord, JobState, now

PROJECT = "local-training"


def job_row(
    job_id: str,
    spec: dict[str, Any],
    *,
    state: JobState = JobState.QUEUED,
    project: str = PROJECT,
    region: str = "us-central1",
) -> JobRecord:
    """A job with this spec in this state."""
    time = now()
    return JobRecord(
        job_id=job_id,
        project=project,
        number=project_number(project),
        region=region,
        display_name="test",
        labels={},
        request={"displayName": "test", "jobSpec": spec},
        state=state,
        create_time=time,
        start_time=None,
        end_time=None,
        update_time=time,
        error_code=None,
        error_message=None,
    )
