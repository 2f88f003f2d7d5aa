"""What happens to the stack, and what is told, if a run ends before its last step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import command, steps
from vertex_training_cli.verify.steps import Run

CLEAN = "vt destroy --stack first --yes --name first"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    ref = StackRef(tmp_path, "p", "first", "local-first", "us-central1")
    subject: Any = None
    return Run(ref, PulumiCli(tmp_path, {}), subject, tmp_path, str, lambda _: None)


@pytest.fixture
def destroyed(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    found: list[Run] = []
    monkeypatch.setattr(steps, "destroy", lambda run, _last: found.append(run))
    return found


def ending(error: BaseException, *, is_made: bool = True) -> Callable[[Run], str]:
    def run_steps(run: Run) -> str:
        run.is_made = is_made
        with run.step("up"):
            raise error

    return run_steps


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CommandError("up ended with exit code 1."), "up ended with exit code 1."),
        (KeyboardInterrupt(), "interrupted"),
        (ZeroDivisionError("of ours"), "of ours"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ],
)
def test_a_run_that_ends_early_is_destroyed_and_one_failed_step_is_its_difference(
    run: Run, destroyed: list[Run], monkeypatch: pytest.MonkeyPatch,
    error: BaseException, told: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(steps, "run_steps", ending(error))
    assert command._run(run, keep=False) == told
    assert destroyed == [run]
    text = str(error) or type(error).__name__
    assert run.observed == {f"up | result | failed: {text}"}


def test_a_run_that_is_kept_says_what_removes_it(
    run: Run, destroyed: list[Run], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(steps, "run_steps", ending(KeyboardInterrupt()))
    assert command._run(run, keep=True) == "interrupted"
    assert destroyed == []
    told = f"vt verify: kept, as asked. To remove it: {CLEAN}\n"
    assert capsys.readouterr().err == told


def test_nothing_is_destroyed_before_anything_was_made(
    run: Run, destroyed: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "run_steps", ending(KeyboardInterrupt(), is_made=False))
    assert command._run(run, keep=False) == "interrupted"
    assert destroyed == []


def test_a_destruction_that_fails_says_what_removes_the_rest(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_run: Run, _last: str) -> None:
        raise CommandError("destroy ended with exit code 3.")

    monkeypatch.setattr(steps, "run_steps", ending(KeyboardInterrupt()))
    monkeypatch.setattr(steps, "destroy", refuse)
    assert command._run(run, keep=False) == "interrupted"
    told = (
        f"vt verify: not all is destroyed. To remove it: {CLEAN}\n"
        "vt verify: destroy ended with exit code 3.\n"
    )
    assert capsys.readouterr().err == told
    monkeypatch.setattr(steps, "run_steps", lambda run: setattr(run, "is_made", True) or "")
    assert command._run(run, keep=True) == "destroy ended with exit code 3."
    assert capsys.readouterr().err == told
