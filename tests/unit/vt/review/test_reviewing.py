"""The steps of `vt review` as functions: what is asked where, and what a review offline leaves."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rich.console

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.errors import CommandError, Problem
from vertex_training_cli.engine import plan_file, preview, pulumi_cli, stacks
from vertex_training_cli.engine.plan import JobObservation, Observations, Plan
from vertex_training_cli.images import lookup
from vertex_training_cli.jobs import moved, observe
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

    def plan(_root: Path, stack: str, how: PreviewOptions) -> tuple[Plan, str]:
        found.calls.append(("plan", stack, how))
        return found.made, found.source

    monkeypatch.setattr(command, "_plan", plan)
    monkeypatch.setattr(command, "_problems", lambda *_: list(found.problems))
    monkeypatch.setattr(observe, "observe_jobs", observed)
    monkeypatch.setattr(moved, "find_moved_jobs", moves)
    monkeypatch.setattr(lookup, "for_review", images)
    return found


@pytest.mark.parametrize(
    ("how", "source", "offline"),
    [
        (PreviewOptions(), "gs://acme-state", False),
        (PreviewOptions(offline=True), "gs://acme-state", True),
        (PreviewOptions(), "Previewed offline against an empty state", True),
    ],
)
def test_jobs_images_and_moves_are_asked_of_the_cloud_unless_offline(
    asked: Asked, how: PreviewOptions, source: str, offline: bool
) -> None:
    asked.source = source
    made, plan = command._review("dev", "", how)
    images = {
        TRAIN: ["a", "b", "f"], NIGHTLY: ["e"],
        SERVE: ["model titanic run 4", "model titanic run 5"],
    }  # fmt: skip
    assert asked.calls == [
        ("plan", "dev", how),
        ("jobs", "dev", True, offline),
        *([] if offline else [("moved", "dev", True)]),
        ("images", "dev", images, [KEPT, NIGHTLY, SERVE, TRAIN], offline),
    ]
    assert plan is PLAN
    assert (made.source, made.unseen_images, made.origins) == (
        source, (UNSEEN,), {TRAIN: "commit 1"},
    )  # fmt: skip
    assert made.problems == (() if offline else (MOVED,))
    assert {each.name: each.now for each in made.jobs} == {"a": None, "b": None, "c": SEEN}
    assert made.not_observed == "no right"


def test_files_are_judged_where_the_preview_failed(asked: Asked) -> None:
    wrong = Problem("wrong", "x", rule="r")
    asked.problems = (wrong,)
    assert command._review("dev", "", PreviewOptions(offline=True))[0].problems == ()
    asked.made = plans.plan(plans.said("error", "1 mistake"), plans.summary("failed"))
    made, _ = command._review("dev", "", PreviewOptions(offline=True))
    assert (made.problems, made.outcome) == ((wrong,), ReviewOutcome.FAILED)


@pytest.mark.parametrize(
    ("expect", "how", "message", "hint"),
    [
        ("", PreviewOptions(policy_levels=Path("x")), "--policy-levels is about a --policy-pack.",
         "add one."),
        ("1234567", PreviewOptions(),
         "--expect takes 8 to 64 hex digits of a plan's digest (got 1234567)", ""),
        ("g" * 90, PreviewOptions(),
         f"--expect takes 8 to 64 hex digits of a plan's digest (got {'g' * 80})", ""),
        ("0" * 65, PreviewOptions(),
         f"--expect takes 8 to 64 hex digits of a plan's digest (got {'0' * 65})", ""),
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
    with pytest.raises(CommandError, match=r"^there is no Pulumi\.yaml here or above"):
        command._review("dev", "", PreviewOptions())


@pytest.mark.parametrize("save", [None, Path("plan.json")])
def test_the_engine_is_asked_for_the_plan_that_the_options_say(
    root: Path, monkeypatch: pytest.MonkeyPatch, save: Path | None
) -> None:
    calls = list[Any]()

    def target(_ref: Any, **how: bool) -> stacks.PreviewTarget:
        calls.append(how)
        return stacks.PreviewTarget({"A": "1"}, "the state")

    def make_plan(pulumi: pulumi_cli.PulumiCli, stack: str, **options: Any) -> Plan:
        options["on_event"](3)
        [pack, config] = options["policy_options"][1::2]
        levels = json.loads(Path(config).read_text())
        calls.append((pulumi.root, stack, pack, levels, options["refresh"], options["save_plan"]))
        return PLAN

    monkeypatch.setattr(stacks.StackRef, "preview_target", target)
    monkeypatch.setattr(preview, "make_plan", make_plan)
    monkeypatch.setattr(command, "_load_the_rest", lambda: None)
    (root / "levels.json").write_text('{"p": "advisory"}')
    how = PreviewOptions(("policy",), Path("levels.json"), False, True, save)
    found, source = command._plan(root, "dev", how)
    assert (found.levels, source) == ({"p": "advisory"}, "the state")
    written = root / "plan.json" if save else None
    levels = {"p": {"enforcementLevel": "advisory"}}
    assert calls == [
        {"offline": False, "refresh": True},
        (root, "dev", f"{root}/policy", levels, True, written),
    ]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_moves_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    told = list[str]()

    class Console:
        def __init__(self, *, stderr: bool = False) -> None:
            assert stderr, "standard output is for the report"

        def status(self, text: str) -> Status:
            return Status(text)

    class Status:
        def __init__(self, text: str) -> None:
            told.append(text)

        def __enter__(self) -> Any:
            return SimpleNamespace(update=told.append)

        def __exit__(self, *_: object) -> None:
            told.append("end")

    monkeypatch.setattr(rich.console, "Console", Console)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: is_terminal))
    with command._progress("dev") as on_event:
        on_event(7)
    shown = ["previewing dev", "previewing dev: 7 events", "end"]
    assert told == (shown if is_terminal else [])


def test_any_character_can_be_printed_whatever_the_terminal_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("stdout", "stderr"):
        made = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, name, made)
    command._write_utf8()
    for stream in (sys.stdout, sys.stderr):
        stream.write("é\ud800")
        stream.flush()
        assert stream.buffer.getvalue() == b"\xc3\xa9\\ud800"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("format_", "begins"),
    [
        (ReportFormat.MD, "## Review of stack `dev`"),
        (ReportFormat.HTML, "<!DOCTYPE html>"),
        (ReportFormat.JSON, '{\n  "version": 1,'),
    ],
)
def test_a_report_is_rendered_as_asked_for(format_: ReportFormat, begins: str) -> None:
    made = report.build(PLAN, source="here")
    assert command._render(made, PLAN, format_)[: len(begins)] == begins


def test_a_plan_is_rendered_with_its_source_and_its_problems() -> None:
    source = "Previewed against the state in gs://acme-state"
    made = report.build(PLAN, source=source, problems=[MOVED])
    found = plan_file.parse(command._render(made, PLAN, ReportFormat.PLAN).encode(), "dev")
    assert (found.source, found.problems) == (source, (MOVED,))
    assert [each.name for each in found.plan.steps] == [each.name for each in PLAN.steps]
