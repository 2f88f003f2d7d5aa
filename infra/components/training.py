"""The training jobs: one ``CustomJob`` for each entry of ``jobs`` in the stack file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from infra.customjob.resource import CustomJob
from infra.customjob.spec import JobRequest
from infra.settings import Job


class Training(pulumi.ComponentResource):
    """All jobs of a stack."""

    jobs: dict[str, CustomJob]

    def __init__(
        self,
        name: str,
        *,
        requests: Mapping[str, JobRequest],
        jobs: Mapping[str, Job],
        labels: Mapping[str, str],
        control_bucket: str,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: everything a job may need; none is submitted before all of it is there."""
        super().__init__("vertextraining:training:Training", name, None, opts)
        self.jobs = {
            key: CustomJob(
                f"{name}-{key}",
                request=request,
                labels=labels,
                control_bucket=control_bucket,
                on_delete=jobs[key].on_delete,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            for key, request in requests.items()
        }
        self.register_outputs({"jobs": {key: job.name for key, job in self.jobs.items()}})
