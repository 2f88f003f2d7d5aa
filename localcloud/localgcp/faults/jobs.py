"""Faults of running jobs: a stock-out, a preempted machine, a killed process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localgcp.faults.model import Fault, Kind, Service
from localgcp.faults.table import Entry, FaultTable
from localgcp.vertex.records import JobRecord


def stockout_message(region: str) -> str:
    """Return the stock-out text as reported in
    github.com/openreview/openreview-expertise/issues/401.
    """
    return f"STOCKOUT: Resources are insufficient in region: {region}."


@dataclass(frozen=True)
class JobFaults:
    """Faults of one job, as its runner applies them."""

    table: FaultTable
    subjects: Sequence[str]
    """Texts in which a fault's ``match`` is searched."""
    first: str
    """The replica to kill if a fault names no replica."""
    is_spot: bool
    """True for strategy SPOT: only SPOT jobs lose their machines."""

    def stockout(self) -> Entry | None:
        """Return the stock-out of this job when it requests its machines, or None."""
        return self._take(lambda fault: fault.kind is Kind.STOCKOUT)

    def preempted(self, names: Sequence[str], ran_seconds: float) -> Sequence[str]:
        """Return the running replicas that now lose their machines."""
        if not self.is_spot:
            return ()
        due = self._take(
            lambda fault: (
                fault.kind is Kind.PREEMPT
                and ran_seconds >= (fault.seconds or 0)
                and fault.replica in ("", *names)
            )
        )
        return () if due is None else [due.fault.replica] if due.fault.replica else names

    def killed(self, name: str, ran_seconds: float) -> bool:
        """Return whether this running replica is killed now."""
        return None is not self._take(
            lambda fault: (
                fault.kind is Kind.KILL
                and ran_seconds >= (fault.seconds or 0)
                and (fault.replica or self.first) == name
            )
        )

    def _take(self, accept: Callable[[Fault], bool]) -> Entry | None:
        taken = self.table.count_call(Service.JOBS, "", lambda _: [*self.subjects], accept)
        return taken[0] if taken else None


def faults_of(table: FaultTable, job: JobRecord) -> JobFaults:
    """Return the faults of a CustomJob; ``match`` may name strategy, machine or accelerator."""
    strategy = job.spec.get("scheduling", {}).get("strategy", "STANDARD")
    machines = [(pool or {}).get("machineSpec", {}) for pool in job.spec.get("workerPoolSpecs", ())]
    fields = ("machineType", "acceleratorType")
    requested = [machine.get(field, "") for machine in machines for field in fields]
    subjects = (job.job_id, job.display_name, *job.labels.values(), strategy, *requested)
    return JobFaults(table, subjects, "workerpool0-0", strategy == "SPOT")
