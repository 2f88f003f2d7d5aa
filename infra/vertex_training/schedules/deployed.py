"""A schedule in a stack's state, and the requests for its scheduled times (slots).

The state is the only record of a schedule: all submitters of jobs could write a copy in the
control bucket (decision 95).
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.kinds import JobKind, kind_in_section
from vertex_training.customjob.protocol.ports import SLOT_LABEL, SubmissionRequest, request_labels
from vertex_training.customjob.request.job_file import ID_LENGTH, REQUEST_ID, SLOT, digest_of
from vertex_training.errors import CommandError
from vertex_training.settings import cron
from vertex_training.settings.cron import Calendar

#: Key of the outputs: the time up to which no job is submitted.
SINCE: Final = "since"
#: All inputs of the resource, which are also its outputs.
STORED: Final = ("submission", "schedule", "requestId", "request", "options")


@dataclass(frozen=True, slots=True)
class DeployedSchedule:
    """A schedule of a stack."""

    project: str
    region: str
    stack: str
    job: str
    run: int
    kind: JobKind
    request: str
    """The request for all scheduled times, with ``${job.slot}`` and ``${job.requestId}``."""
    labels: Mapping[str, str]
    control_bucket: str
    records: str
    """Folder of the records in the control bucket."""
    account: str
    """Account for submissions; empty for the caller's account."""
    on_delete: str
    calendar: Calendar
    missed: str
    paused: bool
    since: str
    """Time (see ``cron.name_of``) up to which no job is submitted."""

    @property
    def parent(self) -> str:
        """Return the parent of the jobs in API calls: ``projects/P/locations/R``."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def id(self) -> str:
        """Return the id of the schedule's resource in the state."""
        return schedule_id(self.parent, self.kind, self.job)

    @property
    def turn_key(self) -> str:
        """Return the key of the job's turn record."""
        return f"{self.region}/{self.job}"

    def request_id(self, slot: str) -> str:
        """Return the request id of a slot. The id does not depend on the job's file.

        So a slot has one job even after edits of the file.
        """
        parts = (self.project, self.region, self.stack, self.kind.section, self.job, slot)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{slot}-{digest[:ID_LENGTH]}"

    def submission(self, slot: str) -> SubmissionRequest:
        """Return the request to submit for a scheduled time."""
        id_ = self.request_id(slot)
        body = self.request.replace("${" + SLOT + "}", slot)
        body = body.replace("${" + REQUEST_ID + "}", id_)
        digest, job = digest_of(body), (self.stack, self.job, self.run)
        # The last labels win: no stack file may override the labels of a request.
        labels = {**self.labels, **request_labels(*job, id_, digest), SLOT_LABEL: slot}
        return SubmissionRequest(self.parent, *job, id_, body, digest, labels)

    def next(self, after: datetime.datetime, count: int) -> list[datetime.datetime]:
        """Return the next scheduled times after ``after``; empty while the schedule is paused."""
        after = max(after, cron.time_of(self.since)) if self.since else after
        return [] if self.paused else self.calendar.next(after, count)

    @classmethod
    def of(cls, props: Mapping[str, Any]) -> DeployedSchedule:
        """Create the schedule from a resource's inputs, or from its outputs in a state.

        Raises:
            KeyError, TypeError, ValueError: another version of this program wrote the values.
        """
        submission, schedule, options = props["submission"], props["schedule"], props["options"]
        kind = kind_in_section(submission["section"])
        json.loads(props["request"])
        since = str(props.get(SINCE) or "")
        if since:
            cron.time_of(since)
        if cron.problem(schedule["cron"]) or schedule["timeZone"] not in cron.zones():
            raise ValueError("the calendar is invalid")
        return cls(
            project=submission["project"],
            region=submission["region"],
            stack=submission["stack"],
            job=submission["job"],
            run=int(submission["run"]),
            kind=kind,
            request=props["request"],
            labels=options["labels"],
            control_bucket=options["controlBucket"],
            records=f"{options.get('records', '')}{kind.records}",
            account=str(options.get("impersonate", "")),
            on_delete=options["onDelete"],
            calendar=Calendar(schedule["cron"], schedule["timeZone"]),
            missed=schedule["missed"],
            paused=bool(schedule["paused"]),
            since=since,
        )


def schedule_id(parent: str, kind: JobKind, job: str) -> str:
    """Return the id of a schedule's resource, which differs from all ids of jobs."""
    return f"{parent}/schedules/{kind.section}/{job}"


def deployed_schedules(deployment: Mapping[str, Any], type_: str) -> Iterator[DeployedSchedule]:
    """Yield the schedules (resources of ``type_``) in an exported state.

    Raises CommandError if another version of this program wrote a schedule.
    """
    for resource in deployment.get("resources") or ():
        if resource.get("type") != type_ or resource.get("delete"):
            continue
        try:
            yield DeployedSchedule.of(resource["outputs"])
        except (KeyError, TypeError, ValueError, StopIteration):
            name = str(resource.get("urn", "")).rpartition("::")[2]
            hint = "run `vt up` with the installed version"
            what = f"another version of this program wrote schedule {name} in the state."
            raise CommandError(what, hint) from None
