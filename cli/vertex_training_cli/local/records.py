"""Records of jobs and tuning jobs, by the id that a stack has of them."""

from __future__ import annotations

from typing import Protocol

from localgcp.home import Home
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobRecord, JobTable


class JobLookup(Protocol):
    """Finds the record of a job."""

    def get(self, job_id: str) -> JobRecord | None: ...


class StackRecords:
    """Finds records of both kinds. No two jobs have the same id."""

    def __init__(self, home: Home) -> None:
        self._jobs, self._tuning_jobs = JobTable(home.database), TuningTable(home.database)

    def get(self, job_id: str) -> JobRecord | None:
        """The job or tuning job; None if its record was deleted."""
        return self._jobs.get(job_id) or self._tuning_jobs.get(job_id)
