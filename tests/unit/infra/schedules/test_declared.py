"""A schedule from the stack file to the state: what is declared, refused, priced and kept."""

import asyncio

import pulumi
import pytest

from tests.unit.infra.customjob.fakes import Process
from tests.unit.infra.recorder import Recorder
from tests.unit.infra.schedules.fakes import SCHEDULE, SlotWorld, ports_of
from tests.unit.infra.stacks import BASE
from vertex_training import program
from vertex_training.catalog import costs
from vertex_training.catalog.resource_types import JOB
from vertex_training.catalog.resource_types import SCHEDULE as TYPE
from vertex_training.errors import CommandError, ConfigError
from vertex_training.schedules import provider as providers
from vertex_training.schedules.deployed import DeployedSchedule, deployed_schedules
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.settings.cron import name_of, time_of
from vertex_training.stack import from_raw

FILE = """\
serviceAccount: trainer-prod@acme-ml-prod.iam.gserviceaccount.com
baseOutputDirectory: {outputUriPrefix: "gs://out/${job.name}"}
scheduling: {timeout: 36000s}
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec: {imageUri: "eu.example/x/y@sha256:%s"}
""" % ("0" * 64)
RATE = costs.hourly("n1-standard-4", None, 0, "us-central1")
assert RATE is not None
WEEKLY = {"cron": "0 6 * * 1", "timeZone": "Europe/Berlin"}


def stack(root, file=FILE, schedule=WEEKLY, **changes):
    (root / "job.yaml").write_text(file)
    jobs = {"weekly": {"file": "job.yaml", "schedule": schedule}, "once": {"file": "job.yaml"}}
    return from_raw(BASE | {"jobs": jobs} | changes, root)


def problems(root, **changes):
    try:
        found = stack(root, **changes)
    except ConfigError as refused:
        return [str(problem) for problem in refused.problems]
    results = found.check_jobs()
    of_files = [problem for result in results.values() for problem in result.errors]
    return [str(problem) for problem in (*of_files, *found.exceeded_limits(results))]


def declared(root, **changes):
    asyncio.set_event_loop(asyncio.new_event_loop())
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, "vertex-training", "prod")

    @pulumi.runtime.test
    def run():
        program.deploy(stack(root, **changes))

    run()
    return recorder.registered


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
    for wrong in ({}, changed(cron="* * * * *"), changed(timeZone="Mars"), {**PROPS, "request": 1}):
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
