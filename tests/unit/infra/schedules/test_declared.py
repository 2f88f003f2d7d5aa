"""A schedule from the stack file to the state: what is declared, refused, priced and kept."""

import pytest

from tests.unit.infra.customjob.fakes import Process
from tests.unit.infra.schedules.fakes import SCHEDULE, SlotWorld, ports_of
from vertex_training.catalog.resource_types import JOB
from vertex_training.catalog.resource_types import SCHEDULE as TYPE
from vertex_training.errors import CommandError
from vertex_training.schedules import provider as providers
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.settings.cron import name_of, time_of

PROPS = {
    "submission": {"project": "local-p", "region": "r", "stack": "local", "job": "titanic",
                   "run": 1, "section": "jobs"},
    "schedule": {"cron": "0 6 * * 1", "timeZone": "Europe/Berlin", "paused": False,
                 "missed": "latest"},
    "requestId": "0" * 20,
    "request": SCHEDULE.request,
    "options": {"labels": {"team": "ml"}, "controlBucket": "control", "onDelete": "keep"},
}  # fmt: skip


@pytest.fixture
def provider(monkeypatch):
    """The provider on a cloud in memory."""
    world = SlotWorld()
    monkeypatch.setattr(providers, "connect", lambda *_: ports_of(Process(world)))
    made = JobScheduleProvider()
    made.world = world
    return made


def changed(**schedule):
    return {**PROPS, "schedule": {**PROPS["schedule"], **schedule}}


def test_slots_are_submitted_as_the_state_has_them(provider):
    outs = provider.create(PROPS).outs
    assert DeployedSchedule.of(outs) == SCHEDULE.__class__.of({**PROPS, "since": outs["since"]})
    assert time_of(outs["since"]).timestamp() == provider.world.time
    assert not provider.check({}, PROPS).failures
    assert not provider.diff("", outs, PROPS).changes


def test_inputs_of_another_program_are_refused(provider):
    for wrong in (
        {},
        changed(cron="* * * * *"),
        changed(timeZone="Mars"),
        {**PROPS, "request": 1},
    ):
        assert provider.check({}, wrong).failures


def test_the_state_is_read_as_it_was_deployed(provider):
    outs = provider.create(PROPS).outs
    row = {"type": TYPE, "urn": "urn::x::training-titanic-schedule", "outputs": outs}
    deployment = {"resources": [{"type": JOB}, row, {**row, "delete": True}]}
    [found] = deployed_schedules(deployment, TYPE)
    assert found.since == name_of(time_of(outs["since"]))
    with pytest.raises(CommandError, match="another version"):
        list(deployed_schedules({"resources": [{**row, "outputs": {"submission": {}}}]}, TYPE))
    assert list(deployed_schedules({}, TYPE)) == []
