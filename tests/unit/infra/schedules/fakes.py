"""A schedule, and the ports that it is advanced with, in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.unit.infra.customjob.fakes import Process, World
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.schedules import slots
from vertex_training.schedules.deployed import DeployedSchedule
from vertex_training.schedules.slots import SchedulePorts
from vertex_training.settings.cron import Calendar, name_of

REQUEST = json.dumps(
    {
        "displayName": "local-titanic",
        "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://artifacts/t/${job.slot}"}},
    }
)
SINCE = datetime(2026, 11, 26, tzinfo=UTC)
MONDAY = datetime(2026, 11, 30, 5, tzinfo=UTC)
"""The first slot."""
SCHEDULE = DeployedSchedule(
    project="local-p",
    region="r",
    stack="local",
    job="titanic",
    run=1,
    kind=CUSTOM_JOB,
    request=REQUEST,
    labels={"team": "ml"},
    control_bucket="control",
    records="",
    account="",
    on_delete="keep",
    calendar=Calendar("0 6 * * 1", "Europe/Berlin"),
    missed="latest",
    paused=False,
    since=name_of(SINCE),
)
PROPS: dict[str, Any] = {
    "submission": {
        "project": "local-p", "region": "r", "stack": "local", "job": "titanic", "run": 1.0,
        "section": "jobs",
    },
    "schedule": {
        "cron": "0 6 * * 1", "timeZone": "Europe/Berlin", "paused": False, "missed": "latest",
    },
    "requestId": "0" * 20,
    "request": SCHEDULE.request,
    "options": {"labels": {"team": "ml"}, "controlBucket": "control", "onDelete": "keep"},
    "since": SCHEDULE.since,
}  # fmt: skip
#: Another job of the same stack.
OTHER = replace(SCHEDULE, job="other")


class SlotWorld(World):
    """A cloud that keeps what was sent, with the slot of each job."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict] = []

    @property
    def slots_sent(self) -> list[str]:
        return [each["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] for each in self.bodies]

    def end(self, state: str = "SUCCEEDED") -> None:
        """All jobs that have not ended do."""
        for name, job in self.jobs.items():
            if job.state in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING"):
                self.jobs[name] = replace(job, state=f"JOB_STATE_{state}")

    @property
    def live_jobs(self) -> list[str]:
        live = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
        return [name for name, job in self.jobs.items() if job.state in live]


class SlotProcess(Process):
    """A process whose creations are recorded, with the id that each job carries."""

    world: SlotWorld

    def create(self, parent, body, labels):
        before = set(self.world.jobs)
        try:
            made = super().create(parent, body, labels)
        finally:
            for name in set(self.world.jobs) - before:
                self.world.bodies.append(json.loads(body))
                id_ = labels["vt-request-id"]
                digest = labels["vt-request-digest"]
                job = self.world.jobs[name]
                self.world.jobs[name] = replace(job, request_id=id_, digest=digest)
        return self.world.jobs[made.name]

    def cancel(self, name):
        def act():
            self.world.jobs[name] = replace(self.world.jobs[name], state="JOB_STATE_CANCELLED")

        self._call("cancel", act)


def ports_of(process: Process) -> SchedulePorts:
    return SchedulePorts(process, process, environment=process.environment())


def tick(world, now, schedule=SCHEDULE, on_call=None, *, dry_run=False, **given):
    """One run of the step at ``now``; its outcomes."""
    world.time = now.timestamp()
    process = SlotProcess(world, on_call or (lambda name, when: None), **given)
    found = slots.advance(schedule, ports_of(process), world.time, dry_run=dry_run)
    return list(found)
