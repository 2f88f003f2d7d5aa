"""Missing capacity of a Batch job: the job stays QUEUED, and an event reports what is missing.

Quota is that of Compute Engine, as ``regions.get`` answers it: a fault (``compute patch``) takes
some away. Texts are as reported (github.com/nextflow-io/nextflow/issues/3061, DataBiosphere/dsub
issue 303); a stock-out and a reservation that is used up have texts of ours.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from localgcp.batch.records import ACTIVE, BatchJob, BatchTable, State
from localgcp.batch.run import faults_of
from localgcp.faults.table import FaultTable, stockout_message
from localgcp.inventory import machines, reservations
from localgcp.inventory.store import Store

_WANTED: Final = "Quota checking process decided to delay scheduling for the job"
#: Function that answers a REST request (verb, target, body) as JSON.
Ask = Callable[[str, str, bytes], bytes | None]


class Capacity:
    """Checks quota, reservations and stock-outs for waiting jobs."""

    def __init__(self, store: Store, jobs: BatchTable, faults: FaultTable, ask: Ask) -> None:
        self._store, self._jobs, self._faults, self._ask = store, jobs, faults, ask
        self._stockouts: dict[str, tuple[int, float]] = {}

    def wanting(self, job: BatchJob) -> str:
        """Return the first missing capacity; empty if all capacity is available."""
        return next(self._missing(job), "")

    def _missing(self, job: BatchJob) -> Iterator[str]:
        if self._is_over(job) and (met := faults_of(self._faults, job).stockout()):
            seconds = met.fault.seconds
            self._stockouts[job.uid] = met.id, time.monotonic() + (seconds or math.inf)
        if not self._is_over(job):
            yield f"VM in Managed Instance Group meets error: {stockout_message(job.region)}"
        yield from self._quota(job)
        yield from self._reservation(job)

    def _is_over(self, job: BatchJob) -> bool:
        """Return whether the job's stock-out is over, because of the time or a cleared fault."""
        if job.uid not in self._stockouts:
            return True
        id_, until = self._stockouts[job.uid]
        going = until > time.monotonic()
        return not going or all(entry.id != id_ for entry in self._faults.entries())

    def _quota(self, job: BatchJob) -> Iterator[str]:
        target = f"/compute/v1/projects/{job.project}/regions/{job.region}"
        limits = {
            quota.get("metric"): (float(quota.get("limit", 0)), float(quota.get("usage", 0)))
            for quota in json.loads(self._ask("GET", target, b"") or b"{}").get("quotas", [])
        }
        for metric, wanted in _quotas(job).items():
            if metric not in limits:
                continue
            limit, usage = limits[metric]
            if wanted > limit - usage:
                text = f"[Quota: {metric}, limit: {limit:g}, usage: {usage:g}, wanted: {wanted:g}.]"
                yield f"{_WANTED} {job.uid} due to inadequate quotas {text}."

    def _reservation(self, job: BatchJob) -> Iterator[str]:
        """Yield problems of the job's reservation; a reserved machine serves one job at a time."""
        name = job.policy.get("reservation", "")
        if name in ("", "NO_RESERVATION"):
            return
        path = name if "projects/" in name else f"projects/{job.project}/{name}"
        resource = reservations.find(self._store, path) if path.count("/") >= 5 else None
        if resource is None or not resource.open_to(job.project):
            yield f"The reservation {name} does not exist, or is not shared with the project."
            return
        policy = job.policy
        shape = reservations.shape_of(
            {
                "machineType": policy.get("machineType"),
                "guestAccelerators": [
                    {
                        "acceleratorType": accelerator["type"],
                        "acceleratorCount": accelerator["count"],
                    }
                    for accelerator in policy.get("accelerators", [])
                ],
            }
        )
        if resource.shape != shape:
            yield (
                f"The reservation {name} has machines of {resource.shape}; the job requests "
                f"{shape}."
            )
        used = sum(
            _machines(other)
            for other in self._jobs.list(states=ACTIVE)
            if other.state is not State.QUEUED and other.policy.get("reservation") == name
        )
        if _machines(job) > resource.count - used:
            yield (
                f"The reservation {name} has no free machines: {used} of {resource.count} are in "
                "use."
            )


def _machines(job: BatchJob) -> int:
    return min(int(job.group["parallelism"]), job.task_count)


def _quotas(job: BatchJob) -> dict[str, float]:
    """Return the quota that all machines of a job use together, by metric."""
    count, policy = _machines(job), job.policy
    demand: dict[str, float] = {"CPUS": count * int(job.spec["computeResource"]["cpuMilli"]) / 1000}
    gpus: list[tuple[str, Any]] = [
        (accelerator["type"], accelerator["count"])
        for accelerator in policy.get("accelerators", [])
    ]
    if built_in := machines.BUILT_IN_GPUS.get(policy.get("machineType", "")):
        gpus.append(built_in)
    spot = "PREEMPTIBLE_" if policy.get("provisioningModel") in ("SPOT", "PREEMPTIBLE") else ""
    for name, number in gpus:
        metric = name.upper().replace("-", "_").replace("TESLA_", "")
        demand[f"{spot}{metric}_GPUS"] = count * int(number)
    return demand
