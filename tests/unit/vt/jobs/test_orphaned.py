"""Which jobs of a stack no state has, and what is said of each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState

from localgcp.apis.server import serve
from localgcp.inventory.store import project_number
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.submitting import submit, until_running
from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import BUCKET, JOB, SCHEDULE
from vertex_training.customjob import provider
from vertex_training.errors import CommandError, OperatorError, Problem
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed
from vertex_training_cli.jobs.deployed import deployed_jobs, find_moved_jobs, planned_from
from vertex_training_cli.jobs.service import Jobs

PLACE = "projects/1/locations/r"


def custom(number: int, state: str = "RUNNING", **labels: str) -> CustomJob:
    own = {"vt-request-id": f"r-{number}", "vt-job": f"job-{number}", "vt-run": "2", **labels}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", state=JobState[f"JOB_STATE_{state}"], labels=own
    )


SLOT = {"vt-slot": "20261130t050000z", "vt-job": "weekly"}


class Stack:
    """A stack, its job service, and what was asked of both."""

    parent = PLACE

    def __init__(self, *listed: Any, now: Any = None) -> None:
        self.listed = list(listed)
        self.now = now or {job.name: job for job in listed}
        self.asked: list[Any] = []

    def connect_clients(self) -> None:
        self.asked.append("connect")

    def list(self, **given: Any) -> list[Any]:
        self.asked.append(given)
        return self.listed

    def get_if_exists(self, name: str) -> Any:
        self.asked.append(name)
        return self.now.get(name)


def found(
    monkeypatch: pytest.MonkeyPatch, stack: Any, known: set[str], *, with_runs: bool = False
) -> list[str]:
    """The numbers of the orphaned jobs."""
    monkeypatch.setattr(deployed, "Jobs", lambda ref: ref)
    jobs = deployed.find_orphaned_jobs(stack, known, with_runs=with_runs)
    return [job.name.rpartition("/")[2] for job in jobs]


@pytest.mark.parametrize(
    ("known", "orphans"),
    [
        (set(), ["1", "2", "3"]),
        ({f"{PLACE}/schedules/jobs/weekly"}, ["2", "3"]),
        ({f"{PLACE}/schedules/tuning/weekly"}, ["1", "3"]),
        ({f"{PLACE}/customJobs/1"}, ["1", "2", "3"]),  # a slot is its schedule's
        ({"r-3"}, ["1", "2"]),
        ({f"{PLACE}/customJobs/3"}, ["1", "2"]),
    ],
)
def test_a_slot_is_known_by_its_schedule_and_a_rung_by_its_request(
    monkeypatch: pytest.MonkeyPatch, known: set[str], orphans: list[str]
) -> None:
    labels = {f"vt-tuning-{key[3:]}": value for key, value in SLOT.items()}
    tuning = HyperparameterTuningJob(
        name=f"{PLACE}/hyperparameterTuningJobs/2", state=JobState.JOB_STATE_RUNNING,
        labels={"vt-tuning-request-id": "x", **labels},
    )  # fmt: skip
    stack = Stack(custom(1, **SLOT), tuning, custom(3, **{"vt-rung": "2"}))
    assert found(monkeypatch, stack, known) == orphans


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


CUSTOM_JOB = "pulumi-python:dynamic/vertex:CustomJob"
PULUMI = '#!/bin/sh\ncat "{states}/$4.json"\n'


@dataclass
class Checkout:
    """Stack files ``old`` and ``new``, and their states."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def stack(self, name: str, *jobs: str, project: str = PROJECT, **state: str) -> None:
        files = "".join(f"\n    {job}: {{file: job.yaml}}" for job in jobs) or " {}"
        (self.root / f"Pulumi.{name}.yaml").write_text(
            f"config:\n  gcp:project: {project}\n  gcp:region: us-central1\n"
            f'  vertex-training:projectNumber: "{project_number(project)}"\n'
            f"  vertex-training:jobs:{files}\n"
        )
        resources = [
            {"urn": f"urn:pulumi:{name}::demo::a$b::training-{job}", "type": CUSTOM_JOB, "id": id_}
            for job, id_ in state.items()
        ]
        exported = {"deployment": {"resources": resources}}
        (self.root / f"{name}.json").write_text(json.dumps(exported))

    def moved(self, stack: str) -> list[Problem]:
        state = json.loads((self.root / f"{stack}.json").read_text())["deployment"]
        ref = StackRef(self.root, "demo", stack, PROJECT, "us-central1")
        pulumi = PulumiCli(self.root, self.env)
        return find_moved_jobs(ref, deployed_jobs(state), pulumi)


@pytest.fixture
def checkout(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkout]:
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (tmp_path / "job.yaml").touch()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(PULUMI.format(states=tmp_path))
    pulumi.chmod(0o755)
    yield Checkout(tmp_path, {**os.environ, "PATH": f"{pulumi.parent}:{os.environ['PATH']}"})
    server.stop(None).wait()


@pytest.fixture
def live(cloud: Cloud) -> str:
    """Resource name of a job that runs."""
    record = cloud.jobs.get(until_running(cloud, submit(cloud, "sleep 600", "fit", stack="old")))
    assert record
    return record.name


def test_another_project_and_what_cannot_be_read_are_passed_over(
    checkout: Checkout, live: str
) -> None:
    checkout.stack("old", fit=live)
    checkout.stack("new", "fit", project="local-other")
    assert checkout.moved("old") == []
    checkout.stack("new", "fit")
    (checkout.root / "Pulumi.old.yaml").write_text("config: [")
    assert checkout.moved("old") == checkout.moved("new") == []
    checkout.stack("old", fit=live)
    (checkout.root / "old.json").unlink()
    assert checkout.moved("new") == []


def test_a_stack_file_that_cannot_be_read_hides_no_other(checkout: Checkout, live: str) -> None:
    checkout.stack("old", fit=live)
    checkout.stack("new", "fit")
    (checkout.root / "Pulumi.broken.yaml").write_text("config: [")
    assert [each.value for each in checkout.moved("old")] == [live]


def test_a_job_that_cannot_be_looked_at_is_not_told(
    checkout: Checkout, live: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.stack("old", fit=live)
    checkout.stack("new", "fit")
    for error in (CommandError("no local cloud"), OperatorError("Vertex AI: 403")):

        def refuse(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(Jobs, "get_if_exists", refuse)
        assert checkout.moved("old") == []
    monkeypatch.undo()
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(StackRef, "connect_clients", refuse)
    assert checkout.moved("old") == []


def test_a_plan_begins_with_the_jobs_of_the_state() -> None:

    deleted = plans.delete(plans.JOB, "training-fit", **plans.job("fit"))
    deleted["resourcePreEvent"]["metadata"]["old"]["id"] = "customJobs/1"
    told = [
        deleted,
        plans.create(plans.JOB, "training-new", **plans.job("new")),
        plans.delete(plans.BUCKET, "training-data"),
    ]
    assert planned_from(plans.plan(*told)) == {"fit": "customJobs/1"}
