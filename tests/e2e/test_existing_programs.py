"""Tests components among other resources of a program, as existing Pulumi users write them."""

from __future__ import annotations

import copy
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import automation

from tests.e2e.inline_programs import REGION, SPEC, InlinePrograms, resources
from vertex_training import TrainingAccount, TrainingBuckets, TrainingJob
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import Jobs, labels_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PROJECT = "local-teams"
JOB_TYPE = "pulumi-python:dynamic/vertex:CustomJob"


def vertex_ai() -> gcp.projects.Service:
    return gcp.projects.Service(
        "vertex-ai", project=PROJECT, service="aiplatform.googleapis.com", disable_on_destroy=False
    )


def image_of_the_program() -> None:
    """Declare a job whose image is unknown until another resource (here a bucket) is created."""
    provider = gcp.Provider("explicit", project=PROJECT, region=REGION)
    opts = pulumi.ResourceOptions(provider=provider, depends_on=[vertex_ai()])
    store = TrainingBuckets("store", opts=opts)
    account = TrainingAccount("trainer", opts=opts)
    after_store = pulumi.ResourceOptions(provider=provider, depends_on=[store])
    build = gcp.storage.Bucket("build", location=REGION, force_destroy=True, opts=after_store)
    spec = copy.deepcopy(SPEC) | {"serviceAccount": account.email}
    container = spec["workerPoolSpecs"][0]["containerSpec"]
    container["imageUri"] = build.self_link.apply(lambda _: "python:3.11")
    job = TrainingJob("hello", control_bucket=store.control, spec=spec, opts=opts)
    pulumi.export("cost", job.cost_usd_at_most)


def test_up_checks_an_image_that_is_unknown_in_the_preview(programs: InlinePrograms) -> None:
    stack = programs.stack(image_of_the_program)
    seen = stack.preview()
    assert "imageUri: the image is unknown in this preview" in seen.stdout + seen.stderr
    assert "create" in seen.change_summary
    made = stack.up()
    assert made.outputs["cost"].value > 0
    again = stack.preview()
    assert set(again.change_summary) == {"same"}
    assert "is unknown in this preview" not in again.stdout + again.stderr
    kinds = {each["type"]: each for each in resources(stack).values()}
    inputs = kinds["vertex-training:index:TrainingJob"]["inputs"]
    assert (inputs["project"], inputs["region"]) == (PROJECT, REGION)
    assert inputs["spec"]["workerPoolSpecs"][0]["containerSpec"]["imageUri"] == "python:3.11"
    assert "costUsdAtMost" in kinds["vertex-training:index:TrainingJob"]["outputs"]
    stack.destroy()
    assert programs.checkout.left(PROJECT) == {}


class Team(pulumi.ComponentResource):
    """A team's own component with components of this project inside."""

    def __init__(self, name: str, environment: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__("acme:index:Team", f"{name}-{environment}", None, opts)
        inside = pulumi.ResourceOptions(parent=self)
        named = {"environment": f"{name}-{environment}"}
        prefix = f"{name}-{environment}"
        self.store = TrainingBuckets(f"{prefix}-store", **named, opts=inside)
        account = TrainingAccount(
            f"{prefix}-trainer", **named, base_name="run", opts=inside,
            reads={"code": self.store.names["staging"]},
        )  # fmt: skip
        spec: dict[str, Any] = copy.deepcopy(SPEC) | {"serviceAccount": account.email}
        TrainingJob(
            f"{prefix}-hello", **named, base_name="hello", spec=spec,
            control_bucket=self.store.control, opts=inside,
        )  # fmt: skip


def teams() -> None:
    """Declare two teams in two environments, in a loop."""
    provider = gcp.Provider("explicit", project=PROJECT, region=REGION)
    opts = pulumi.ResourceOptions(providers=[provider], depends_on=[vertex_ai()])
    for name in ("vision", "speech"):
        for environment in ("blue", "green"):
            Team(name, environment, opts)


@pytest.mark.nightly
def test_loop_over_teams_and_environments_deploys_in_one_stack(programs: InlinePrograms) -> None:
    stack = programs.stack(teams, project="teams")
    stack.up()
    states = resources(stack).values()
    ids = {each["inputs"]["accountId"] for each in states if "accountId" in each.get("inputs", {})}
    assert ids == {"run-vision-blue", "run-vision-green", "run-speech-blue", "run-speech-green"}
    jobs = [each["inputs"]["submission"] for each in states if each["type"] == JOB_TYPE]
    assert {each["job"] for each in jobs} == {"hello"}
    assert len({each["stack"] for each in jobs}) == 4
    # `vt jobs` lists them by the Pulumi program, whose stack is in none of their names.
    ref = StackRef(programs.checkout.path, "teams", "dev", PROJECT, REGION)
    own = [labels_of(job) for job in Jobs(ref).list()]
    assert {each["vt-request-id"] for each in own if each.get("vt-program") == "teams_dev"} == {
        each["inputs"]["requestId"] for each in states if each["type"] == JOB_TYPE
    }
    assert set(stack.preview().change_summary) == {"same"}
    stack.destroy()


@pytest.mark.nightly
def test_jobs_of_one_name_share_a_record_bucket(programs: InlinePrograms) -> None:
    runs = {"vision": 1, "speech": 1}

    def declare() -> None:
        place = {"project": PROJECT, "region": REGION}
        store = TrainingBuckets("store", **place)
        account = TrainingAccount("trainer", project=PROJECT)
        spec = copy.deepcopy(SPEC) | {"serviceAccount": account.email}
        opts = pulumi.ResourceOptions(depends_on=[vertex_ai()])
        for team, run in runs.items():
            TrainingJob(
                f"{team}-hello", **place, base_name="hello", environment=team, run=run,
                control_bucket=store.control, spec=spec, opts=opts,
            )  # fmt: skip

    stack = programs.stack(declare, project="shared")
    stack.up()
    before = jobs_of(stack)
    assert len(before) == 2
    runs["speech"] = 2
    stack.up()
    after = jobs_of(stack)
    assert [team for team in runs if after[team] != before[team]] == ["speech"]
    assert set(stack.preview().change_summary) == {"same"}
    stack.destroy()


def jobs_of(stack: automation.Stack) -> dict[str, str]:
    """Return names of the jobs in the state, by environment."""
    states = resources(stack).values()
    jobs = [each for each in states if each["type"] == JOB_TYPE]
    return {each["inputs"]["submission"]["stack"]: each["id"] for each in jobs}


@pytest.mark.nightly
def test_job_survives_the_rename_of_its_component(programs: InlinePrograms) -> None:
    name = "hello"

    def declare() -> None:
        place = {"project": PROJECT, "region": REGION}
        api = vertex_ai()
        store = TrainingBuckets("store", **place)
        account = TrainingAccount("trainer", project=PROJECT)
        aliases = [] if name == "hello" else [pulumi.Alias(name="hello")]
        spec = copy.deepcopy(SPEC) | {"serviceAccount": account.email}
        opts = pulumi.ResourceOptions(aliases=aliases, depends_on=[api])
        TrainingJob(name, **place, base_name="renamed", control_bucket=store.control, spec=spec,
                    opts=opts)  # fmt: skip

    stack = programs.stack(declare, project="renames")
    stack.up()
    name = "greeting"
    assert set(stack.up().summary.resource_changes or {}) == {"same"}
    stack.destroy()
