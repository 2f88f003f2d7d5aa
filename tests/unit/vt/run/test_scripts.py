"""Which stacks accept a run, who confirms its cost, and an interrupted submission."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.run import command, submission

JOB = "projects/1/locations/us-central1/customJobs/7"


def loaded(*, protects: bool = False) -> Any:
    names = SimpleNamespace(bucket=lambda key: f"acme-ml-{key}-dev")
    return SimpleNamespace(
        settings=SimpleNamespace(protects=protects, names=names, project_number="7")
    )


@pytest.mark.parametrize(("project", "up"), [("acme-ml", "vt up"), ("local-x", "vt local up")])
def test_a_stack_takes_runs_if_it_is_up_and_not_protected(
    monkeypatch: pytest.MonkeyPatch, project: str, up: str
) -> None:
    ref = StackRef(Path(), "p", "dev", project, "us-central1")
    there = {(project, "acme-ml-control-dev", "7")}
    monkeypatch.setattr(submission, "has_bucket", lambda *given: given in there)
    command._ensure_usable(ref, loaded())
    with pytest.raises(CommandError) as refused:
        command._ensure_usable(ref, loaded(protects=True))
    assert str(refused.value) == (
        "stack dev is protected: a review of each job is required. Hint: add the job to the stack "
        "file, or use another stack"
    )
    there.clear()
    with pytest.raises(CommandError) as refused:
        command._ensure_usable(ref, loaded())
    assert str(refused.value) == (
        "stack dev is not deployed: bucket acme-ml-control-dev does not exist. Hint: run "
        f"`{up} --stack dev`"
    )


def run_of(job: str) -> Any:
    return SimpleNamespace(request=SimpleNamespace(cost="$1", submission=SimpleNamespace(job=job)))


@pytest.mark.parametrize(("terminal", "yes"), [(False, True), (True, False), (True, True)])
def test_a_cost_on_google_is_confirmed_by_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, yes: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(
        command.typer, "confirm", lambda text, err: asked.append((text, err)) or yes
    )
    if terminal and yes:
        command._confirm(run_of("run_a"))
    else:
        with pytest.raises(typer.Exit) as ended:
            command._confirm(run_of("run_a"))
        assert ended.value.exit_code == 2
    told = "the job run_a costs at most $1"
    assert asked == [(f"{told}. Submit the job?", True)] * terminal
    alone = "Without a terminal, --yes is required. No job was submitted."
    assert capsys.readouterr().err == ("" if terminal else f"vt: {told}. {alone}\n")


@pytest.mark.parametrize("interrupts", [0, 1, 2])
def test_an_interruption_of_a_submission_waits_for_its_answer_and_then_cancels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupts: int
) -> None:
    answer, left = threading.Event(), [KeyboardInterrupt] * interrupts

    class Waited(Future[str]):
        def result(self, timeout: float | None = None) -> str:
            if left:
                raise left.pop()
            answer.set()
            return super().result(timeout)

    monkeypatch.setattr(command, "Future", Waited)
    monkeypatch.setattr(command.submission, "submit", lambda *_: answer.wait(60) and JOB)
    prepared: Any = SimpleNamespace(request=SimpleNamespace(submission=SimpleNamespace(job="a")))
    stack: Any = None
    if interrupts == 2:
        with pytest.raises(KeyboardInterrupt):
            command._submit(prepared, stack)
        answer.set()
    else:
        name, stopped_by = command._submit(prepared, stack)
        assert (name, isinstance(stopped_by, KeyboardInterrupt)) == (JOB, interrupts == 1)
    told = (
        "vt: job a is being submitted and will be cancelled afterwards; press Ctrl-C again to exit"
    )
    assert capsys.readouterr().err == (f"{told} without waiting\n" if interrupts else "")
