"""The machines a job runs on: the one process that stands for them, and reservations it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.errors import StartRefusedError
from localcloud.inventory.store import Store
from localcloud.rpc_code import RpcCode
from localcloud.vertex import capacity
from localcloud.vertex.records import JobRecord, JobState, JobTable


def only_pool(job: JobRecord) -> dict[str, Any]:
    """The one worker pool of a job that can run here.

    Raises StartRefusedError for more replicas.
    """
    pools = [pool for pool in job.spec.get("workerPoolSpecs", []) if pool]
    replicas = sum(int(pool.get("replicaCount", 1)) for pool in pools)
    if replicas != 1:
        text = (
            f"this local cloud runs one replica, and this job has {replicas} in {len(pools)} "
            "worker pools. Rehearse it with one, or run it on Vertex AI."
        )
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    return pools[0]


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
