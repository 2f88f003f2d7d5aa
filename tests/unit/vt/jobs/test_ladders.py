"""Which inputs of a state a job was submitted by, and what was deployed with it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.catalog.resource_types import BUCKET, JOB, SCHEDULE
from vertex_training.customjob import provider
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed


def given(stack: str, job: str, **more: Any) -> dict[str, Any]:
    return {"submission": {"stack": stack, "job": job}, **more}


OF_JOB, OF_SCHEDULE = given("dev", "fit"), given("dev", "fit", schedule={"cron": "x"})


JOB_NAME = "projects/1/locations/us-central1/customJobs/42"
LADDER = given("dev", "fit", options={"ladder": {"rungs": 2}})


def job_of(**labels: str) -> CustomJob:
    return CustomJob(name=JOB_NAME, labels={"vt-stack": "dev", "vt-job": "fit"} | labels)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A state with ``resources``; which environments it was read in."""
    found = SimpleNamespace(resources=[{"type": JOB, "inputs": LADDER}], read=[], error=None)

    def export(pulumi: PulumiCli, stack: str) -> dict[str, Any]:
        found.read.append((pulumi.root, dict(pulumi.env), stack))
        if found.error:
            raise found.error
        return {"resources": found.resources}

    def target(ref: StackRef, *, offline: bool) -> Any:
        return SimpleNamespace(env={"LOCAL": f"{ref.stack} {offline}"})

    monkeypatch.setattr(PulumiCli, "export_deployment", export)
    monkeypatch.setattr(StackRef, "preview_target", target)
    monkeypatch.setattr(provider, "ladder_of", lambda inputs: ("ladder", inputs))
    monkeypatch.setattr(provider, "idle_stop_of", lambda inputs: ("idle", inputs))
    monkeypatch.setattr(provider, "stop_reason", lambda *given: ("reason", *given))
    return found


DEV = StackRef(Path("/srv"), "demo", "dev", "acme-ml", "us-central1")
LOCAL = StackRef(Path("/srv"), "demo", "dev", "local-ml", "us-central1")
OURS = {"vt-request-id": "r-1"}


def test_a_state_is_read_where_the_stack_has_it(state: SimpleNamespace) -> None:
    schedule = given("dev", "fit", schedule={})
    state.resources += [{"type": SCHEDULE, "inputs": schedule}, {"type": BUCKET, "inputs": {}}]
    for ref, env in ((DEV, dict(os.environ)), (LOCAL, {"LOCAL": "dev False"})):
        state.read.clear()
        assert deployed.deployed_inputs(ref) == [LADDER, schedule]
        assert state.read == [(Path("/srv"), env, "dev")]
    state.error = CommandError("no passphrase.", "set one")
    with pytest.raises(OperatorError) as failed:
        deployed.deployed_inputs(DEV)
    assert str(failed.value) == (
        "the state of stack dev cannot be read: no passphrase. Hint: set one"
    )


def test_a_job_has_what_was_deployed_with_it(state: SimpleNamespace) -> None:
    job = job_of(**OURS)
    assert deployed.ladder_of(job, DEV) == ("ladder", LADDER)
    assert deployed.idle_stop_of(job, DEV) == ("idle", LADDER)
    assert deployed.stop_reason(job, DEV) == ("reason", LADDER, JOB_NAME, "r-1")


def test_a_job_of_others_has_nothing(state: SimpleNamespace) -> None:
    other = job_of(**OURS, **{"vt-job": "gone"})
    for job, reads in ((other, 3), (job_of(), 0)):  # one without a request id costs no look
        state.read.clear()
        assert deployed.ladder_of(job, DEV) is None
        assert deployed.idle_stop_of(job, DEV) is None
        assert deployed.stop_reason(job, DEV) == ""
        assert len(state.read) == reads
