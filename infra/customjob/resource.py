"""``CustomJob``: what the program declares for one training job."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi import dynamic

from infra.customjob.provider import CustomJobProvider
from infra.customjob.spec import JobRequest


class CustomJob(dynamic.Resource, module="vertex", name="CustomJob"):
    """One submission of a training job on Vertex AI.

    Replaced when its request changes, and then deleted before it is created anew: the option
    stands on the resource because ``--replace`` and taint skip the provider's ``diff``, and
    would otherwise adopt the running job and cancel it right after.
    """

    # Without annotation, since those are outputs. Only tests that cannot wait have another.
    PROVIDER = CustomJobProvider

    name: pulumi.Output[str]
    """Resource name: ``projects/NUMBER/locations/REGION/customJobs/ID``."""
    state: pulumi.Output[str]
    """State when last looked at; ``pulumi refresh`` looks again."""
    requestId: pulumi.Output[str]
    requestDigest: pulumi.Output[str]
    artifactUri: pulumi.Output[str]
    """``baseOutputDirectory`` of the job, empty if it has none."""
    consoleUrl: pulumi.Output[str]
    logUrl: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        request: JobRequest,
        labels: Mapping[str, str],
        control_bucket: str,
        on_delete: str,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """``labels`` are the stack's; they never make a job another one.

        ``control_bucket`` holds the record that makes the submission happen once.
        ``on_delete`` is ``keep`` or ``delete``: what becomes of the record of the ended job.
        """
        submission = request.submission
        inputs = {
            "project": submission.project,
            "region": submission.region,
            "stack": submission.stack,
            "job": submission.job,
            "run": submission.run,
            "requestId": request.request_id,
            "requestDigest": request.digest,
            "request": request.body,
            "labels": dict(labels),
            "controlBucket": control_bucket,
            "onDelete": on_delete,
        }
        outputs = dict.fromkeys(("name", "state", "artifactUri", "consoleUrl", "logUrl"))
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(delete_before_replace=True)
        )
        super().__init__(self.PROVIDER(), resource_name, {**inputs, **outputs}, opts)
