"""Faults that happen to jobs: no machine to be had, or one that is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from localcloud.faults.model import Fault, Kind, Service
from localcloud.faults.table import FaultTable
from localcloud.vertex.records import JobRecord

#: Restarts after a preemption (docs.cloud.google.com/vertex-ai/docs/training/use-spot-vms).
PREEMPTIONS: Final = 6


def stockout_message(region: str) -> str:
    """As reported: github.com/openreview/openreview-expertise/issues/401."""
    return f"STOCKOUT: Resources are insufficient in region: {region}."


class JobFaults:
    """What the runner asks about a job."""

    def __init__(self, table: FaultTable) -> None:
        self._table = table

    def stockout(self, job: JobRecord) -> Fault | None:
        """The stock-out this job meets when it asks for its machines."""
        return self._take(job, lambda fault: fault.kind is Kind.STOCKOUT)

    def preempted(self, job: JobRecord, ran_seconds: float) -> bool:
        """Is the machine of this running job taken away now? Only SPOT jobs lose theirs."""
        if job.spec.get("scheduling", {}).get("strategy") != "SPOT":
            return False
        due = self._take(
            job, lambda fault: fault.kind is Kind.PREEMPT and ran_seconds >= (fault.seconds or 0)
        )
        return due is not None

    def _take(self, job: JobRecord, accept: Callable[[Fault], bool]) -> Fault | None:
        subjects = [job.job_id, job.display_name, *job.labels.values()]
        taken = self._table.count_call(Service.JOBS, "", lambda _: subjects, accept)
        return taken[0].fault if taken else None
