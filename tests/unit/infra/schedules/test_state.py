"""A schedule as the state has it, field by field, and what its provider does and says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.infra.schedules.fakes import PROPS, SCHEDULE
from vertex_training.customjob.protocol.ports import Timing
from vertex_training.errors import CommandError
from vertex_training.schedules import provider
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.schedules.slots import SchedulePorts


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
        "another version of this program wrote schedule training-titanic-schedule in the state. "
        "Hint: run `vt up` with the installed version"
    )
    assert list(deployed_schedules({"resources": [{**row, "type": "u"}]}, "t")) == []
    assert list(deployed_schedules({"resources": [{**row, "delete": True}]}, "t")) == []
    [failure] = JobScheduleProvider().check({}, {**PROPS, **changes}).failures
    assert (failure.property, failure.reason) == (
        *("", "JobSchedule: the inputs are incomplete or invalid"),
    )


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
