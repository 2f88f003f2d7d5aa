"""A schedule as the state has it, and the request of each of its slots. Pure.

The state is the one record of a schedule: what a review showed and ``up`` deployed. An object in
the control bucket would be a copy that whoever submits jobs can write
(docs/adr/0095-one-command-does-what-is-due.md).
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.kinds import JobKind, kind_in_section
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    DIGEST_LABEL_LENGTH,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    SLOT_LABEL,
    STACK_LABEL,
    SubmissionRequest,
)
from vertex_training.customjob.request.job_file import ID_LENGTH, REQUEST_ID, SLOT, digest_of
from vertex_training.errors import CommandError
from vertex_training.settings import cron
from vertex_training.settings.cron import Calendar

#: Key of the outputs: slots up to this one never run.
SINCE: Final = "since"
#: Inputs that the state keeps among the outputs: all of them.
KEPT: Final = ("submission", "schedule", "requestId", "request", "options")


@dataclass(frozen=True, slots=True)
class DeployedSchedule:
    """One schedule of a stack."""

    project: str
    region: str
    stack: str
    job: str
    run: int
    kind: JobKind
    request: str
    """The request of every slot, with ``${job.slot}`` and ``${job.requestId}``."""
    labels: Mapping[str, str]
    control_bucket: str
    records: str
    """Folder of its records there."""
    account: str
    """Account that submits for the caller; empty for the caller itself."""
    on_delete: str
    calendar: Calendar
    missed: str
    paused: bool
    since: str
    """Name of a time; slots up to it never run."""

    @property
    def parent(self) -> str:
        """The parent of its jobs, as the API names it."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def id(self) -> str:
        """Its id in the state."""
        return schedule_id(self.parent, self.kind, self.job)

    @property
    def turn_key(self) -> str:
        """Key of the turn record of its job."""
        return f"{self.region}/{self.job}"

    def request_id(self, slot: str) -> str:
        """Identity of a slot: it is the same whatever the job's file says by then.

        So a slot that an edit comes in between of still has one job.
        """
        parts = (self.project, self.region, self.stack, self.kind.section, self.job, slot)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{slot}-{digest[:ID_LENGTH]}"

    def submission(self, slot: str) -> SubmissionRequest:
        """Return the request to submit for a slot."""
        id_ = self.request_id(slot)
        body = self.request.replace("${" + SLOT + "}", slot)
        body = body.replace("${" + REQUEST_ID + "}", id_)
        digest = digest_of(body)
        labels = {
            **self.labels,  # first: no stack file may override the labels below
            STACK_LABEL: self.stack,
            REQUEST_ID_LABEL: id_,
            DIGEST_LABEL: digest[:DIGEST_LABEL_LENGTH],
            JOB_LABEL: self.job,
            RUN_LABEL: str(self.run),
            SLOT_LABEL: slot,
        }
        return SubmissionRequest(
            self.parent, self.stack, self.job, self.run, id_, body, digest, labels
        )

    def next(self, after: datetime.datetime, count: int) -> list[datetime.datetime]:
        """The next slots after this time; none while it is paused."""
        after = max(after, cron.time_of(self.since)) if self.since else after
        return [] if self.paused else self.calendar.next(after, count)

    @classmethod
    def of(cls, props: Mapping[str, Any]) -> DeployedSchedule:
        """The schedule of a resource's inputs, or of its outputs in a state.

        Raises:
            KeyError, TypeError, ValueError: it is of another version of this program.
        """
        submission, schedule, options = (
            props[key] for key in ("submission", "schedule", "options")
        )
        kind = kind_in_section(submission["section"])
        json.loads(props["request"])
        since = str(props.get(SINCE) or "")
        if since:
            cron.time_of(since)
        if cron.problem(schedule["cron"]) or schedule["timeZone"] not in cron.zones():
            raise ValueError("no calendar")
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
    """Id of a schedule's resource, which tells it from those of jobs."""
    return f"{parent}/schedules/{kind.section}/{job}"


def deployed_schedules(deployment: Mapping[str, Any], type_: str) -> Iterator[DeployedSchedule]:
    """The schedules in a state, as ``pulumi stack export`` prints it; ``type_`` is their type.

    Raises:
        CommandError: one is of another version of this program.
    """
    for resource in deployment.get("resources") or ():
        if resource.get("type") != type_ or resource.get("delete"):
            continue
        try:
            yield DeployedSchedule.of(resource["outputs"])
        except (KeyError, TypeError, ValueError, StopIteration):
            name = str(resource.get("urn", "")).rpartition("::")[2]
            hint = "`vt up` with the version that is installed here"
            raise CommandError(
                f"the state's schedule {name} is of another version of this program.", hint
            ) from None
