"""The steps of `vt review` as functions: what is asked where, and what a review offline leaves."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.errors import CheckUnavailableError, CommandError, Problem
from vertex_training_cli.engine import plan_file
from vertex_training_cli.engine.plan import JobObservation, Observations, Plan
from vertex_training_cli.images import lookup
from vertex_training_cli.jobs import deployed, observe
from vertex_training_cli.review import command, report
from vertex_training_cli.review.command import PreviewOptions, ReportFormat
from vertex_training_cli.review.report import ReviewOutcome

STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
"""
AR = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev"
TRAIN, KEPT, SERVE, NIGHTLY = (
    f"{AR}/{name}@sha256:{'1' * 64}" for name in ("train", "kept", "serve", "nightly")
)
VERSION = "pulumi-python:dynamic/vertex:ModelVersion"
SEEN = JobObservation("RUNNING", 60, 1.0)
MOVED = Problem("moves", "a", rule="job-changes-stacks")
UNSEEN = "train: nobody answered"


def version(run: int) -> dict[str, Any]:
    model = {"model": "titanic", "job": "titanic", "run": run}
    return {"model": model, "container": json.dumps({"imageUri": SERVE})}


def job(name: str, op: str, image: str) -> plans.Event:
    inputs = plans.job(name, plans.pool(image=image))
    event = plans.step(op, plans.JOB, name, None if op == "create" else inputs, inputs)
    if op != "create":
        event["resourcePreEvent"]["metadata"]["old"]["id"] = f"id/{name}"
    return event


def schedule(op: str, name: str, image: str) -> plans.Event:
    inputs = plans.job(name, plans.pool(image=image))
    sides = {"create": (None, inputs), "delete": (inputs, None)}.get(op, (inputs, inputs))
    return plans.step(op, SCHEDULE, name, *sides)


PLAN = plans.plan(
    schedule("create", "e", NIGHTLY),
    schedule("update", "f", TRAIN),
    schedule("same", "g", KEPT),
    schedule("delete", "h", KEPT),
    job("a", "create", TRAIN),
    job("b", "create", TRAIN),
    job("c", "same", KEPT),
    plans.create(VERSION, "titanic-4", **version(4)),
    plans.step("replace", VERSION, "titanic-5", version(4), version(5)),
    plans.step("same", VERSION, "titanic-3", version(3), version(3)),
    plans.delete(VERSION, "titanic-2", **version(2)),
)


@dataclasses.dataclass
class Asked:
    """What a review asked of others, in order."""

    made: Plan = PLAN
    source: str = "gs://acme-state"
    calls: list[Any] = dataclasses.field(default_factory=list)
    problems: tuple[Problem, ...] = ()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()

    def observed(ref: Any, plan: Plan, *, offline: bool) -> Observations:
        found.calls.append(("jobs", ref.stack, plan is found.made, offline))
        return Observations({"id/c": SEEN}, "no right")

    def moves(ref: Any, planned: Any, pulumi: Any) -> list[Problem]:
        found.calls.append(("moved", ref.stack, pulumi.root == root))
        return [MOVED]

    def images(ref: Any, jobs: Any, shown: Any, *, offline: bool) -> lookup.Lookup:
        found.calls.append(("images", ref.stack, dict(jobs), list(shown), offline))
        return lookup.Lookup(problems=(), unseen=(UNSEEN,), origins={TRAIN: "commit 1"})

    def plan(ref: Any, how: PreviewOptions) -> tuple[Plan, str, list[Problem]]:
        found.calls.append(("plan", ref.stack, how))
        return found.made, found.source, []

    monkeypatch.setattr(command, "_plan", plan)
    monkeypatch.setattr(command, "_problems", lambda *_: list(found.problems))
    monkeypatch.setattr(observe, "observe_jobs", observed)
    monkeypatch.setattr(deployed, "find_moved_jobs", moves)
    monkeypatch.setattr(lookup, "for_review", images)
    return found


@pytest.mark.parametrize(
    ("expect", "how", "message", "hint"),
    [
        ("", PreviewOptions(policy_levels=Path("x")), "--policy-levels requires --policy-pack.",
         "add --policy-pack."),
        ("1234567", PreviewOptions(),
         "--expect must be 8 to 64 hex digits of a plan's digest (got 1234567)", ""),
        ("g" * 90, PreviewOptions(),
         f"--expect must be 8 to 64 hex digits of a plan's digest (got {'g' * 80})", ""),
        ("0" * 65, PreviewOptions(),
         f"--expect must be 8 to 64 hex digits of a plan's digest (got {'0' * 65})", ""),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_a_preview(
    asked: Asked, expect: str, how: PreviewOptions, message: str, hint: str
) -> None:
    with pytest.raises(CommandError) as refused:
        command._review("dev", expect, how)
    assert (refused.value.message, refused.value.hint, asked.calls) == (message, hint, [])


@pytest.mark.parametrize("expect", ["01234567", "a" * 64])
def test_a_digest_that_is_expected_is_compared(asked: Asked, expect: str) -> None:
    how = PreviewOptions(policy_packs=("policy",), policy_levels=Path("x"), offline=True)
    assert command._review("dev", expect, how)[0].outcome == ReviewOutcome.DIFFERENT


def test_outside_of_a_project_there_is_nothing_to_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckUnavailableError, match=r"^no Pulumi\.yaml in this folder or above"):
        command._review("dev", "", PreviewOptions())


def test_a_plan_is_rendered_with_its_source_and_its_problems() -> None:
    source = "Previewed against the state in gs://acme-state"
    made = report.build(PLAN, source=source, problems=[MOVED])
    found = plan_file.parse(command._render(made, PLAN, ReportFormat.PLAN).encode(), "dev")
    assert (found.source, found.problems) == (source, (MOVED,))
    assert [each.name for each in found.plan.steps] == [each.name for each in PLAN.steps]
