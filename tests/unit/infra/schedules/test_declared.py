"""A schedule from the stack file to the state: what is declared, refused, priced and kept."""

import pytest

from tests.unit.infra.customjob.fakes import Process
from tests.unit.infra.schedules.fakes import PROPS, SCHEDULE, SlotWorld, ports_of
from vertex_training.catalog.resource_types import JOB
from vertex_training.catalog.resource_types import SCHEDULE as TYPE
from vertex_training.errors import CommandError
from vertex_training.schedules import provider as providers
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.settings.cron import name_of, time_of


@pytest.fixture
def provider(monkeypatch):
    """The provider on a cloud in memory."""
    world = SlotWorld()
    monkeypatch.setattr(providers, "connect", lambda *_: ports_of(Process(world)))
    made = JobScheduleProvider()
    made.world = world
    return made


def test_slots_are_submitted_as_the_state_has_them(provider):
    outs = provider.create(PROPS).outs
    assert DeployedSchedule.of(outs) == SCHEDULE.__class__.of({**PROPS, "since": outs["since"]})
    assert time_of(outs["since"]).timestamp() == provider.world.time
    assert not provider.check({}, PROPS).failures
    assert not provider.diff("", outs, PROPS).changes


def test_the_state_is_read_as_it_was_deployed(provider):
    outs = provider.create(PROPS).outs
    row = {"type": TYPE, "urn": "urn::x::training-titanic-schedule", "outputs": outs}
    deployment = {"resources": [{"type": JOB}, row, {**row, "delete": True}]}
    [found] = deployed_schedules(deployment, TYPE)
    assert found.since == name_of(time_of(outs["since"]))
    with pytest.raises(CommandError, match="another version"):
        list(deployed_schedules({"resources": [{**row, "outputs": {"submission": {}}}]}, TYPE))
    assert list(deployed_schedules({}, TYPE)) == []
