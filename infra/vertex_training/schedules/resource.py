"""``JobSchedule``: what the program declares for a job with a ``schedule``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import pulumi
from pulumi import dynamic

from vertex_training.customjob.dynamic_values import IMPERSONATE
from vertex_training.customjob.kinds import SECTION
from vertex_training.customjob.protocol.ports import IDLE_STOP
from vertex_training.customjob.provider import RECORDS
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
        on_delete: str,
        impersonate: str = "",
        records: str = "",
        idle_stop: str | None = None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Declare it; arguments as those of ``CustomJob``."""
        inputs: Mapping[str, object] = {
            "submission": {**asdict(request.submission), SECTION: request.kind.section},
            "schedule": schedule.model_dump(by_alias=True),
            "requestId": request.request_id,
            "request": request.body,
            "options": {
                **({"filledIn": dict(request.filled_in)} if request.filled_in else {}),
                "labels": dict(labels),
                "controlBucket": control_bucket,
                "onDelete": on_delete,
                **({IMPERSONATE: impersonate} if impersonate else {}),
                **({RECORDS: records} if records else {}),
                **({IDLE_STOP: idle_stop} if idle_stop else {}),
            },
        }
        super().__init__(self.PROVIDER(), resource_name, {**inputs, "since": None}, opts)
