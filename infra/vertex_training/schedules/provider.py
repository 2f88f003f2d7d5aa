"""The dynamic provider of ``JobSchedule``: creates, changes and ends schedules.

States refer to this module and class by name: neither can be renamed or moved. The provider submits
nothing: ``vt jobs advance`` submits jobs according to the state.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pulumi
from pulumi import dynamic

from vertex_training.customjob.dynamic_values import (
    BoundedProvider,
    has_unknown,
    print_line,
    without_provider,
)
from vertex_training.customjob.kinds import SECTION
from vertex_training.customjob.protocol.ports import Timing
from vertex_training.customjob.provider import input_options
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.schedules.deployed import SINCE, STORED, DeployedSchedule
from vertex_training.schedules.slots import SchedulePorts, dropped, remove
from vertex_training.settings.cron import UTC, name_of, time_of
from vertex_training.settings.limits import Schedule


class JobScheduleProvider(BoundedProvider):
    """Implements check, diff, create, read, update and delete for the schedule of a job."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:  # noqa: ARG002
        """Validate inputs again, except unknown values."""
        failures = []
        try:
            if not has_unknown(news):
                DeployedSchedule.of(news)
        except (KeyError, TypeError, ValueError, StopIteration):
            text = "JobSchedule: the inputs are incomplete or invalid"
            failures = [dynamic.CheckFailure("", text)]
        return dynamic.CheckResult(news, failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Update changed inputs in place. The schedule continues after its last submission."""
        changes = any(olds.get(key) != news.get(key) for key in STORED)
        return dynamic.DiffResult(changes=changes, replaces=[])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Begin the schedule now, by the control bucket's clock. Raises OperatorError."""
        schedule = DeployedSchedule.of(props)
        return dynamic.CreateResult(schedule.id, _outputs(props, self._now(schedule)))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Return the state unchanged, since the cloud has no schedule to read."""
        return dynamic.ReadResult(id_, without_provider(props))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Store the changes. After a new calendar or a pause, the schedule begins again now.

        Raises OperatorError if the control bucket cannot be written.
        """
        old, new = DeployedSchedule.of(olds), DeployedSchedule.of(news)
        begins = old.calendar != new.calendar or (old.paused and not new.paused)
        now = self._now(new) if begins or old.paused != new.paused else old.since
        moment = time_of(now).timestamp() if now else 0.0
        for slot in dropped(old, new, lambda: connect(old, self.timing), moment):
            print_line(f"schedule of job {new.job}: the job due at {slot} is not submitted")
        return dynamic.UpdateResult(_outputs(news, now if begins else old.since))

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """End the schedule, and cancel its last job. Raises OperatorError for a live job."""
        schedule = DeployedSchedule.of(props)
        cancelled = remove(schedule, connect(schedule, self.timing))
        if cancelled is not None:
            print_line(f"the schedule of job {schedule.job} ended; {cancelled.name} was cancelled")

    def _now(self, schedule: DeployedSchedule) -> str:
        moment = connect(schedule, self.timing).intents.now()
        return name_of(datetime.datetime.fromtimestamp(moment, tz=UTC))


def connect(schedule: DeployedSchedule, timing: Timing = Timing()) -> SchedulePorts:
    """Return the services for the schedule, with Google's clients. Raises OperatorError."""
    from vertex_training.customjob.google import intent_store, job_service, prerequisites

    project, account = schedule.project, schedule.account
    return SchedulePorts(
        job_service.connect(project, schedule.region, schedule.kind, account),
        intent_store.connect(project, schedule.control_bucket, schedule.records, account),
        prerequisites.to_send,
        timing,
    )


def _outputs(props: Mapping[str, Any], since: str) -> dict[str, Any]:
    return {**{key: props[key] for key in STORED}, SINCE: since}


class JobSchedule(dynamic.Resource, module="vertex", name="JobSchedule"):
    """Scheduled times of a job, and the request for each scheduled time. Never replaced."""

    # Not annotated: the SDK creates an output for each annotation. Tests override the provider.
    PROVIDER = JobScheduleProvider

    since: pulumi.Output[str]
    """Slots before this time are not submitted."""

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
        """Declare the resource. The arguments are as in ``CustomJob``."""
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
