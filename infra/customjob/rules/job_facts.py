"""What the other jobs of a stack must know of a job, read from its request."""

from __future__ import annotations

from collections.abc import Mapping

from infra.customjob.rules.context import Ask, JobFacts
from infra.customjob.rules.job import Job
from infra.customjob.rules.stack.stack import outputs_clash


def about(job: Job) -> JobFacts:
    """The facts of one job."""
    asks = tuple(
        Ask(
            tuple((pool.affinity or {}).get("values", ())),
            pool.machine_type,
            pool.accelerator,
            pool.count,
            pool.replicas,
        )
        for pool in job.pools
        if pool.reserved
    )
    return JobFacts(
        output=job.output,
        network=job.spec.get("network", ""),
        attachment=job.spec.get("pscInterfaceConfig", {}).get("networkAttachment", ""),
        nodes=sum(pool.replicas for pool in job.pools),
        asks=asks,
    )


def matter_to(mine: JobFacts, others: Mapping[str, JobFacts]) -> bool:
    """Whether any rule across jobs could say something about the job that ``mine`` is of."""
    return any(
        outputs_clash(mine.output, other.output)
        or (mine.network and other.network)
        or (mine.attachment and other.attachment)
        or (mine.asks and other.asks)
        for other in others.values()
    )
