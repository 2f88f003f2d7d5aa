"""What precedes a verified run: what it is made of, all that stands against it, the question."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from vertex_training.errors import CommandError, Problem
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import command

SUBJECT: Any = SimpleNamespace(
    number="42424242", price="$1.00 at most", request_id="x", job="train"
)
BUCKET = {"type": "gcp:storage/bucket:Bucket", "custom": True}


@pytest.fixture
def ref(tmp_path: Path) -> StackRef:
    return StackRef(tmp_path, "p", "first", "acme-first", "us-central1")


@pytest.fixture
def prepare(
    monkeypatch: pytest.MonkeyPatch, ref: StackRef
) -> Callable[[Any, list[Problem], list[Any]], Any]:
    """Prepares a run of a stack with this state (or error), problems of its price, and jobs."""
    monkeypatch.setattr(StackRef, "deployment_environment", lambda *_: {"BACKEND": "file://x"})

    def run(deployment: Any, dear: list[Problem], jobs: list[Any]) -> Any:
        def export(pulumi: PulumiCli, stack: str) -> Any:
            assert (pulumi.env, stack) == ({"A": "b", "BACKEND": "file://x"}, "first")
            if isinstance(deployment, Exception):
                raise deployment
            return deployment

        monkeypatch.setattr(command.os, "environ", {"A": "b"})
        monkeypatch.setattr(PulumiCli, "export_deployment", export)
        monkeypatch.setattr(command.refusals, "read_subject", lambda _: SUBJECT)
        monkeypatch.setattr(
            command.refusals,
            "price_refusals",
            lambda *given: dear if given == (SUBJECT, 2.5) else [],
        )
        monkeypatch.setattr(command.refusals, "stack_jobs", lambda _: jobs)
        return command._prepare(ref, 2.5)

    return run


def test_a_run_has_a_folder_of_its_own_and_replaces_what_is_the_projects(
    prepare: Any, ref: StackRef, capsys: pytest.CaptureFixture[str]
) -> None:
    run = prepare({"resources": [{"type": "pulumi:providers:gcp", "custom": True}]}, [], [])
    assert (run.ref, run.subject, run.observed) == (ref, SUBJECT, set())
    assert run.pulumi == PulumiCli(ref.root, {"A": "b", "BACKEND": "file://x"})
    assert run.folder.parent == ref.root / ".build" / "verify"
    assert re.fullmatch(r"first-\d{8}T\d{6}Z", run.folder.name)
    text = f"acme-first 42424242 us-central1 first {ref.root} {Path.home()}"
    assert run.normalise(text) == "PROJECT NUMBER REGION STACK CHECKOUT HOME"
    assert capsys.readouterr().err == "vt verify: $1.00 at most\n"
    run.log("more")
    assert capsys.readouterr().err == "vt verify: more\n"


def test_all_that_stands_against_a_run_is_told_and_ends_it(
    prepare: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    job = SimpleNamespace(
        name="projects/1/locations/r/customJobs/7", labels={},
        state=SimpleNamespace(name="JOB_STATE_RUNNING"),
    )  # fmt: skip
    with pytest.raises(typer.Exit) as ended:
        prepare({"resources": [BUCKET]}, [Problem("it is dear")], [job])
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == (
        "vt verify: it is dear.\n"
        "vt verify: stack first has 1 resources already. Hint: if it is left from a run before: "
        "`vt destroy --stack first --yes --name first`\n"
        "vt verify: job projects/1/locations/r/customJobs/7 of stack first is RUNNING. Hint: "
        "`vt jobs cancel 7 --stack first`\n"
        "vt verify: refused; nothing was made.\n"
    )


def test_a_stack_without_a_state_is_one_to_verify_and_one_that_cannot_be_read_is_none(
    prepare: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare(CommandError("no stack named 'first' found"), [], []).subject is SUBJECT
    assert capsys.readouterr().err == (
        "vt verify: stack first has no state yet: no stack named 'first' found\n"
        "vt verify: $1.00 at most\n"
    )
    with pytest.raises(CommandError, match="no right"):
        prepare(CommandError("no right"), [], [])
