"""The command line of ``vt verify``: what it calls, what is told, and the exit codes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import command, comparison, report

REF = StackRef(Path("/r"), "p", "first", "acme-first", "us-central1")
RUN: Any = SimpleNamespace(
    ref=REF,
    folder=Path("/r/run"),
    observed={"up": {}},
    records={"up": []},
    subject=SimpleNamespace(number="42", price="It costs $1 at most."),
)
CLEAN = (
    "vt verify: if this is killed, one command removes what is left: "
    "vt destroy --stack first --yes --name first\n"
)
REFUSED = "vt verify: nothing was made. Without a terminal: --yes\n"


def told(count: int, folder: str) -> str:
    return (
        f"{CLEAN}vt verify: {count} differences: {folder}/differences.md\n"
        "vt verify: to send, after you have read it: /r/archive.tar.gz\n"
    )


@pytest.mark.parametrize(
    ("words", "confirmed", "ended", "differences", "code", "stderr"),
    [
        ((), False, "", [], 2, REFUSED),
        ((), True, "", [], 0, told(0, "/r/run/report")),
        (("--yes",), False, "", [], 0, told(0, "/r/run/report")),
        (("--yes", "--output", "/x/y"), False, "", ["a"], 7, told(1, "/x/y")),
        (("--yes", "--keep"), False, "interrupted", ["a", "b"], 1, told(2, "/r/run/report")),
        (("--yes",), False, "interrupted", [], 1, told(0, "/r/run/report")),
    ],
)
def test_the_exit_code_says_what_became_of_the_run(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], confirmed: bool, ended: str,
    differences: list[str], code: int, stderr: str,
) -> None:  # fmt: skip
    called: list[Any] = []

    def run(given: Any, *, keep: bool) -> str:
        called.append((given is RUN, keep))
        return ended

    def write(folder: Path, stack: str, *rest: Any, ended: str, as_text: Any) -> Path:
        called.append((stack, rest[1:], ended, as_text("acme-first 42 /r x")))
        return Path("/r/archive.tar.gz")

    monkeypatch.setattr(stacks, "find", lambda _name: REF)
    monkeypatch.setattr(command, "_prepare", lambda ref, usd: called.append((ref, usd)) or RUN)
    monkeypatch.setattr(command, "_rehearsed", lambda file: called.append(file) or "rehearsed")
    monkeypatch.setattr(command, "_confirmed", lambda *_: confirmed)
    monkeypatch.setattr(command, "_run", run)
    monkeypatch.setattr(report, "write", write)
    found = SimpleNamespace(differences=differences)
    monkeypatch.setattr(comparison, "compare", lambda *given: called.append(given) or found)
    done = CliRunner().invoke(app, ["verify", "--stack", "first", "--max-usd", "2.5", *words])
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", stderr)
    assert called == [
        (REF, 2.5),
        None,
        *(
            []
            if code == 2
            else [
                (True, "--keep" in words),
                ("rehearsed", RUN.observed),
                ("first", (RUN.observed, RUN.records), ended, '"PROJECT NUMBER CHECKOUT x"'),
            ]
        ),
    ]
