"""A schedule as the state has it, field by field, and what its provider does and says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pulumi.output import Unknown

from tests.unit.infra.customjob.fakes import job
from tests.unit.infra.schedules.fakes import SCHEDULE
from vertex_training.customjob.google import intent_store, job_service, tensorboards
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.errors import CommandError
from vertex_training.schedules import provider
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.schedules.slots import SchedulePorts

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


@pytest.mark.parametrize(
    "changes",
    [
        {"submission": {**PROPS["submission"], "section": "others"}},
        {"schedule": {**PROPS["schedule"], "cron": "* * * * *"}},
        {"schedule": {"cron": "0 6 * * 1"}},
        {"request": "{"},
        {"options": {"labels": {}}},
        {"since": "yesterday"},
    ],
)
def test_state_of_another_version_is_reported(changes: dict[str, Any]) -> None:
    row = {
        "type": "t",
        "urn": "urn:pulumi:s::p::t::training-titanic-schedule",
        "outputs": {**PROPS, **changes},
    }
    with pytest.raises(CommandError) as failed:
        list(deployed_schedules({"resources": [row]}, "t"))
    assert str(failed.value) == (
        "the state's schedule training-titanic-schedule is of another version of this program. "
        "Hint: `vt up` with the version that is installed here"
    )
    assert list(deployed_schedules({"resources": [{**row, "type": "u"}]}, "t")) == []
    assert list(deployed_schedules({"resources": [{**row, "delete": True}]}, "t")) == []
    [failure] = JobScheduleProvider().check({}, {**PROPS, **changes}).failures
    assert (failure.property, failure.reason) == (
        *("", "JobSchedule: its inputs are not the program's"),
    )


def test_unknown_values_are_accepted() -> None:
    unknown = {**PROPS, "options": {"controlBucket": Unknown()}}
    found = JobScheduleProvider().check({}, unknown)
    assert (found.inputs, found.failures) == (unknown, [])
    known = JobScheduleProvider().check({}, PROPS)
    assert (known.inputs, known.failures) == (PROPS, [])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was connected to; the control bucket's clock shows one minute past the epoch."""
    found: list[Any] = []

    class Store:
        def now(self) -> float:
            return 60.0

    def connect(schedule: DeployedSchedule, timing: Timing) -> Any:
        found.append((schedule, timing))
        nobody: Any = None
        store: Any = Store()
        return SchedulePorts(nobody, store)

    monkeypatch.setattr(provider, "connect", connect)
    return found


OUTS = {key: PROPS[key] for key in ("submission", "schedule", "requestId", "request", "options")}


def test_a_schedule_begins_by_the_clock_of_the_control_bucket(asked: list[Any]) -> None:
    made = JobScheduleProvider().create({**PROPS, "since": None, "__provider": "x"})
    assert made.id == SCHEDULE.id
    assert made.outs == {**OUTS, "since": "19700101t000100z"}
    assert asked == [(replace(SCHEDULE, since=""), JobScheduleProvider.timing)]
    read = JobScheduleProvider().read("id", {**PROPS, "__provider": "x"})
    assert (read.id, read.outs) == ("id", PROPS)


def test_slots_go_on_after_an_update_of_anything_else(asked: list[Any]) -> None:
    options = {**PROPS["options"], "onDelete": "delete"}
    kept = JobScheduleProvider().update("", PROPS, {**PROPS, "options": options})
    assert kept.outs == {**OUTS, "options": options, "since": SCHEDULE.since}
    assert asked == []
    paused = {**PROPS, "schedule": {**PROPS["schedule"], "paused": True}}
    again = JobScheduleProvider().update("", paused, PROPS)
    assert again.outs == {**OUTS, "since": "19700101t000100z"}


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_schedule_that_ends_tells_which_job_it_cancelled(
    cancelled: bool, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Any] = []
    said: list[str] = []

    def remove(schedule: Any, ports: Any) -> Any:
        removed.append((schedule, ports.intents.now()))
        return job("customJobs/7", "CANCELLED") if cancelled else None

    monkeypatch.setattr(provider, "remove", remove)
    monkeypatch.setattr(provider, "print_line", said.append)
    JobScheduleProvider().delete("id", PROPS)
    assert removed == [(SCHEDULE, 60.0)]
    line = "the schedule of job titanic ends; customJobs/7 was cancelled"
    assert said == ([line] if cancelled else [])


def test_a_schedule_talks_to_its_project_as_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_service, "connect", lambda *given: ("jobs", *given))
    monkeypatch.setattr(intent_store, "connect", lambda *given: ("records", *given))
    schedule = replace(SCHEDULE, account="me@x", records="one/")
    found = provider.connect(schedule, timing := Timing(lease=1.0))
    assert found == SchedulePorts(
        ("jobs", "local-p", "r", SCHEDULE.kind, "me@x"),  # pyright: ignore[reportArgumentType]
        ("records", "local-p", "control", "one/", "me@x"),  # pyright: ignore[reportArgumentType]
        tensorboards.to_send,
        timing,
    )
