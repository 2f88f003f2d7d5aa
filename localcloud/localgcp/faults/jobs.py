"""Faults that happen to jobs: no machine to be had, one that is taken away, or a process killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from localgcp.faults.model import Fault, Kind, Service
from localgcp.faults.table import FaultTable
from localgcp.vertex.records import JobRecord


def stockout_message(region: str) -> str:
    """As reported: github.com/openreview/openreview-expertise/issues/401."""
    return f"STOCKOUT: Resources are insufficient in region: {region}."


def _asked_for(job: JobRecord) -> Iterator[str]:
    """Its strategy, machines and accelerators, so that a stock-out can be of one of them."""
    yield job.spec.get("scheduling", {}).get("strategy", "STANDARD")
    for pool in job.spec.get("workerPoolSpecs", ()):
        machine = (pool or {}).get("machineSpec", {})
        yield from (machine.get("machineType", ""), machine.get("acceleratorType", ""))


class JobFaults:
    """Faults of a job, as the runner applies them."""

    def __init__(self, table: FaultTable) -> None:
        self._table = table

    def stockout(self, job: JobRecord) -> Fault | None:
        """The stock-out this job meets when it asks for its machines."""
        return self._take(job, lambda fault: fault.kind is Kind.STOCKOUT)

    def preempted(self, job: JobRecord, names: Sequence[str], ran_seconds: float) -> Sequence[str]:
        """The replicas of this running job that lose their machines now.

        Only SPOT jobs lose theirs.
        """
        if job.spec.get("scheduling", {}).get("strategy") != "SPOT":
            return ()
        due = self._take(
            job,
            lambda fault: (
                fault.kind is Kind.PREEMPT
                and ran_seconds >= (fault.seconds or 0)
                and fault.replica in ("", *names)
            ),
        )
        return () if due is None else [due.replica] if due.replica else names

    def killed(self, job: JobRecord, name: str, ran_seconds: float) -> bool:
        """Return whether this replica of a running job is killed now."""
        due = self._take(
            job,
            lambda fault: (
                fault.kind is Kind.KILL
                and ran_seconds >= (fault.seconds or 0)
                and (fault.replica or "workerpool0-0") == name
            ),
        )
        return due is not None

    def _take(self, job: JobRecord, accept: Callable[[Fault], bool]) -> Fault | None:
        subjects = [job.job_id, job.display_name, *job.labels.values(), *_asked_for(job)]
        taken = self._table.count_call(Service.JOBS, "", lambda _: subjects, accept)
        return taken[0].fault if taken else None
