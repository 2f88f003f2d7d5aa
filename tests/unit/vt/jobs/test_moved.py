"""Which jobs go from one stack file to another while they run; ``pulumi`` prints written states."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from localgcp.apis.server import serve
from localgcp.inventory.store import project_number
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.submitting import submit, until_running
from tests.unit.vt.review import plans
from vertex_training.errors import CommandError, OperatorError, Problem
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.deployed import deployed_jobs, find_moved_jobs, planned_from
from vertex_training_cli.jobs.service import Jobs

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
