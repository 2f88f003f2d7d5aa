"""The resources ``CustomJob`` and ``HyperparameterTuningJob``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_training.customjob import kinds
from vertex_training.customjob.protocol.ports import LADDER
from vertex_training.customjob.provider import (
    CustomJobProvider,
    input_options,
    submission_of,
)
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.pulumi_internals import UNKNOWN


class CustomJob(dynamic.Resource, module="vertex", name="CustomJob"):
    """One submission of a training job on Vertex AI.

    A changed request replaces the job: the old job is deleted before the new job is created, or
    after its end (``onChange: finish``). The resource sets ``delete_before_replace`` because
    ``--replace`` and taint skip the provider's ``diff``: they would adopt the running job and then
    cancel it.
    """

    # Not annotated: the SDK creates an output for each annotation. Tests override the provider.
    PROVIDER = CustomJobProvider

    state: pulumi.Output[str]
    """Last read state of the job. ``pulumi refresh`` updates it."""
    requestId: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        request: JobRequest,
        labels: Mapping[str, str],
        control_bucket: pulumi.Input[str],
        options: Mapping[str, Any],
        impersonate: str = "",
        records: str = "",
        is_known: bool = True,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare the job.

        ``labels`` are the stack's labels; changing them does not replace the job.
        ``control_bucket`` has the intent record, which prevents a second submission.
        ``options`` are options of the stack file for the provider. ``onDelete``, ``keep`` or
        ``delete``, applies to the record of an ended job. With ``onChange: finish`` a running job
        continues when its request changes. ``idleStop`` is the condition that cancels the job, like
        ``5% for 30m``; changing it does not replace the job.
        ``impersonate`` is the account that submits the job; empty for the caller's account.
        ``records`` is the folder of the intent record, if environments share ``control_bucket``.
        ``is_known``: False if the request has placeholders for values unknown in a preview.
        """
        self._is_known = is_known
        ladder = [
            {
                "requestId": self.once_known(rung.request_id),
                "request": rung.body,
                "words": rung.words,
            }
            for rung in request.ladder
        ]
        # Few inputs: the SDK creates an output for each and iterates over all outputs at each
        # registration, and the engine lists the dependencies of each (decision 14).
        inputs = {
            "submission": submission_of(request),
            "requestId": self.once_known(request.request_id),
            # Has placeholders: reviews and policies read machines, limits and costs from it.
            "request": request.body,
            "options": {
                **input_options(request, options, labels, control_bucket, impersonate, records),
                **({LADDER: ladder} if ladder else {}),
            },
        }
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(delete_before_replace=True)
        )
        super().__init__(self.PROVIDER(), resource_name, {**inputs, "state": None}, opts)
        self._place = (request.submission.project, request.submission.region)
        self._kind = request.kind
        self._inputs = inputs

    @property
    def inputs(self) -> pulumi.Output[dict[str, Any]]:
        """Return the provider's inputs, which commands also use to submit the job's next rung."""
        return pulumi.Output.from_input(self._inputs)

    def once_known(self, value: str) -> pulumi.Input[str]:
        """Return ``value`` if the request is known, else an unknown output."""
        unknown: Any = pulumi.Output.from_input(UNKNOWN)
        return value if self._is_known else unknown

    # Computed from id and inputs, so that the state does not store them as outputs.

    @property
    def name(self) -> pulumi.Output[str]:
        """Return the resource name: ``projects/NUMBER/locations/REGION/COLLECTION/ID``."""
        return self.id

    @property
    def console_url(self) -> pulumi.Output[str]:
        """Return the URL of the job in the console, or the command that shows a local job."""
        return self.id.apply(lambda name: self._urls(name)[0])

    @property
    def log_url(self) -> pulumi.Output[str]:
        """Return the URL of the job's log in the console, or the command for a local job."""
        return self.id.apply(lambda name: self._urls(name)[1])

    def _urls(self, name: str) -> tuple[str, str]:
        return kinds.console_urls(*self._place, name.rpartition("/")[2], self._kind)


class HyperparameterTuningJob(CustomJob, module="vertex", name="HyperparameterTuningJob"):
    """One submission of a tuning job on Vertex AI, with the same rules as a CustomJob."""
