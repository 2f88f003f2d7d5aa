"""The command line of ``vt verify``: files, exit codes, and the question before a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import command
from vertex_training_cli.verify.steps import Run


@pytest.mark.parametrize(
    ("words", "ended", "facts", "code"),
    [
        ((), "", (), 2),
        (("--yes",), "", (), 0),
        (("--yes",), "", ("new",), 7),
        (("--yes", "--keep"), "interrupted", ("new",), 1),
    ],
)
def test_exit_code_and_files_say_what_became_of_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], ended: str,
    facts: tuple[str, ...], code: int,
) -> None:  # fmt: skip
    ref = StackRef(tmp_path, "p", "first", "acme-first", "us-central1")
    subject: Any = SimpleNamespace(number="42", price="It costs $1 at most.")
    run = Run(ref, PulumiCli(tmp_path, {}), subject, tmp_path / "run", str, print)
    run.note("none", "x", *facts)
    monkeypatch.setattr(stacks, "find", lambda _name: ref)
    monkeypatch.setattr(command, "_prepare", lambda *_: run)
    monkeypatch.setattr(command, "_run", lambda *_, keep: ended)
    done = CliRunner().invoke(app, ["verify", "--stack", "first", "--max-usd", "2.5", *words])
    assert done.exit_code == code, done.output
    if code == 2:
        assert "nothing was made. Without a terminal: --yes" in done.stderr
        assert not run.folder.exists()
        return
    assert "vt destroy --stack first --yes --name first" in done.stderr
    assert (run.folder / "observations.txt").read_text() == "none | x | new\n" * len(facts)
    assert (run.folder / "differences.txt").read_text() == "+ none | x | new\n" * len(facts)


@pytest.mark.parametrize(
    ("typed", "confirmed"),
    [(" first\n", True), ("other", False), (EOFError(), False), (KeyboardInterrupt(), False),
     (None, False)],
)  # fmt: skip
def test_run_takes_the_name_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: Any, confirmed: bool
) -> None:
    def answer(_: str) -> str:
        if isinstance(typed, BaseException):
            raise typed
        return typed

    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: typed is not None, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    ref = StackRef(Path(), "p", "first", "acme", "us-central1")
    run: Any = SimpleNamespace(subject=SimpleNamespace(price="$1 at most."))
    assert command._confirmed(ref, run) is confirmed
    told = "vt verify: makes stack first in project acme, and destroys it. $1 at most.\n"
    assert capsys.readouterr().err == ("" if typed is None else told)
