"""``CustomJob`` and ``HyperparameterTuningJob``: what the program declares for a job."""

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

    A changed request replaces it: the old job is deleted before the new one is created, or when it
    has ended (``onChange: finish``). The
    resource sets ``delete_before_replace`` because ``--replace`` and taint skip the provider's
    ``diff``: they would adopt the running job and then cancel it.
    """

    # Not annotated: the SDK makes an output of each annotation. Tests override it.
    PROVIDER = CustomJobProvider

    state: pulumi.Output[str]
    """State as last read. ``pulumi refresh`` reads it again."""
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

        ``labels`` are the stack's; a change of them does not replace the job.
        ``control_bucket`` holds the intent record, by which the request is submitted only once.
        ``options`` are those of the stack file that the provider reads. ``onDelete``, ``keep`` or
        ``delete``, applies to the record of the job once it has ended. With ``onChange: finish`` a
        running job ends by itself when the request changes; the next ``pulumi up`` submits the new
        request. ``idleStop``: when it is cancelled, like ``5% for 30m``; a change does not replace
        the job.
        ``impersonate`` is the account that submits it; empty for the caller's own.
        ``records`` is the folder of the intent record, where environments share ``control_bucket``.
        ``is_known``: False where the request has a stand-in for what a preview cannot know.
        """
        self._is_known = is_known
        # Keep them few: the SDK makes an output of each and iterates over all of them whenever a
        # resource is registered, and the engine lists the dependencies of each (decision 14).
        inputs = {
            "submission": submission_of(request),
            "requestId": self.once_known(request.request_id),
            # With the stand-in: a review and policies read machines, limits and costs in it.
            "request": request.body,
            "options": {
                **input_options(request, options, labels, control_bucket, impersonate, records),
                **({LADDER: self._ladder(request)} if request.ladder else {}),
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
        """Inputs of the provider, for commands that advance the job to its next rung."""
        return pulumi.Output.from_input(self._inputs)

    def _ladder(self, request: JobRequest) -> list[dict[str, pulumi.Input[str]]]:
        """The rungs after the job file's request."""
        return [
            {
                "requestId": self.once_known(rung.request_id),
                "request": rung.body,
                "words": rung.words,
            }
            for rung in request.ladder
        ]

    def once_known(self, value: str) -> pulumi.Input[str]:
        """``value``, which follows from the request, or an unknown output in its place."""
        unknown: Any = pulumi.Output.from_input(UNKNOWN)
        return value if self._is_known else unknown

    # Computed from the id and the inputs, so the state need not keep them as outputs.

    @property
    def name(self) -> pulumi.Output[str]:
        """Resource name: ``projects/NUMBER/locations/REGION/COLLECTION/ID``."""
        return self.id

    @property
    def console_url(self) -> pulumi.Output[str]:
        """URL of the job in the console, or the command that shows a local job."""
        return self.id.apply(lambda name: self._urls(name)[0])

    @property
    def log_url(self) -> pulumi.Output[str]:
        """URL of the job's log in the console, or the command that shows a local one."""
        return self.id.apply(lambda name: self._urls(name)[1])

    def _urls(self, name: str) -> tuple[str, str]:
        return kinds.console_urls(*self._place, _number(name), self._kind)


class HyperparameterTuningJob(CustomJob, module="vertex", name="HyperparameterTuningJob"):
    """One submission of a tuning job on Vertex AI, under the same rules.

    The service makes a CustomJob of each trial; none of them is a resource of the stack.
    """


def _number(name: str) -> str:
    return name.rpartition("/")[2]
