"""Facts of a job that rules about the stack's other jobs need, read from its request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vertex_training.customjob.rules.context import JobFacts, ReservationRequest
from vertex_training.customjob.rules.job import Job

#: Folders below the output directory that the service passes to a job.
FOLDERS: Final = ("model", "checkpoints", "logs")
REQUEST_ID: Final = "${job.requestId}"


def job_facts_of(job: Job) -> JobFacts:
    """The facts of one job."""
    requests = tuple(
        ReservationRequest(
            tuple((pool.affinity or {}).get("values", ())),
            pool.machine_type,
            pool.accelerator,
            pool.count,
            pool.replicas * job.parallel,
        )
        for pool in job.pools
        if pool.reserved
    )
    return JobFacts(
        output=job.output,
        network=job.network,
        attachment=job.attachment,
        nodes=job.nodes,
        parallel=job.parallel,
        reservation_requests=requests,
    )


def concerns(mine: JobFacts, others: Mapping[str, JobFacts]) -> bool:
    """Whether the other jobs could break a rule of the job with the facts ``mine``."""
    return any(
        outputs_clash(mine.output, other.output)
        or (mine.network and other.network)
        or (mine.attachment and other.attachment)
        or (mine.reservation_requests and other.reservation_requests)
        for other in others.values()
    )


def outputs_clash(one: str, other: str) -> bool:
    """Whether two jobs with these output directories write to the same places.

    A directory that holds the request id is new for every submission.

    >>> outputs_clash("gs://b/x", "gs://b/x/"), outputs_clash("gs://b/x/model", "gs://b/x")
    (True, True)
    """
    if not one or not other or REQUEST_ID in one or REQUEST_ID in other:
        return False
    one, other = one.rstrip("/"), other.rstrip("/")
    return one == other or any(
        (inner + "/").startswith(f"{outer}/{folder}/")
        for outer, inner in ((one, other), (other, one))
        for folder in FOLDERS
    )
