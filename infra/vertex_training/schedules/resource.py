"""``JobSchedule``: what the program declares for a job with a ``schedule``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_training.customjob.kinds import SECTION
from vertex_training.customjob.provider import input_options
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.settings.limits import Schedule


class JobSchedule(dynamic.Resource, module="vertex", name="JobSchedule"):
    """When a job is submitted, and what is submitted for each slot.

    Never replaced: slots that had their turn stay past, whatever changes.
    """

    # Not annotated: the SDK makes an output of each annotation. Tests override it.
    PROVIDER = JobScheduleProvider

    since: pulumi.Output[str]
    """Slots up to this time never run."""

    def __init__(
        self,
        resource_name: str,
        *,
        request: JobRequest,
        schedule: Schedule,
        labels: Mapping[str, str],
        control_bucket: pulumi.Input[str],
        options: Mapping[str, Any],
        impersonate: str = "",
        records: str = "",
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare it; arguments as those of ``CustomJob``."""
        inputs: Mapping[str, object] = {
            "submission": {**asdict(request.submission), SECTION: request.kind.section},
            "schedule": schedule.model_dump(by_alias=True),
            "requestId": request.request_id,
            "request": request.body,
            "options": input_options(
                request, options, labels, control_bucket, impersonate, records
            ),
        }
        super().__init__(self.PROVIDER(), resource_name, {**inputs, "since": None}, opts)
