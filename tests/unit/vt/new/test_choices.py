"""What `vt new job` refuses, asks on a terminal, and hands on as choices."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from vertex_training.errors import CheckUnavailableError, CommandError
from vertex_training_cli.new import command
from vertex_training_cli.new.template import Choices

STACK = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
  vertex-training:jobs: {train: {file: jobs/other.yaml}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    (tmp_path / "jobs" / "other.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on_terminal(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    stdin = SimpleNamespace(isatty=lambda: is_terminal)
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=stdin))


ONE = ("choose one of --image, --package and --code.", "")
NONE = ("say what it runs: --image IMAGE, --code PATH, or --package.", "")
MODULE = ("--module is for --code.", "name the code, too")


@pytest.mark.parametrize(
    ("image", "code", "module", "package", "is_terminal", "refusal"),
    [
        ("i", "", "", False, False, None),
        ("", "c", "", False, False, None),
        ("", "c", "m", False, False, None),
        ("", "", "", False, False, NONE),
        ("i", "c", "", False, True, ONE),
        ("", "", "m", True, False, MODULE),
    ],
)
def test_a_job_runs_one_kind_of_thing(
    monkeypatch: pytest.MonkeyPatch, image: str, code: str, module: str, package: bool,
    is_terminal: bool, refusal: tuple[str, str] | None,
) -> None:  # fmt: skip
    on_terminal(monkeypatch, is_terminal)
    path = Path(code) if code else None
    if refusal is None:
        command._ensure_one_kind(image, path, module, package=package)
        return
    with pytest.raises(CommandError) as refused:
        command._ensure_one_kind(image, path, module, package=package)
    assert (refused.value.message, refused.value.hint) == refusal


def test_a_job_is_made_in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckUnavailableError) as refused:
        command._settings("local", "x")
    assert str(refused.value) == "no Pulumi.yaml here or above: a stack needs a project"


IMAGE, MACHINE = ("Image (empty: code of this checkout)", ""), ("Machine type", "n1-standard-4")


@pytest.mark.parametrize(
    ("given", "package", "is_terminal", "asked", "found"),
    [
        (Choices("a", machine=""), False, True, [IMAGE, MACHINE],
         Choices("a", image="said", machine="said")),
        (Choices("a", machine=""), True, True, [MACHINE], Choices("a", machine="said")),
        (Choices("a", "i", machine="m"), False, True, [], Choices("a", "i", machine="m")),
        (Choices("a", machine="m"), False, True, [IMAGE], Choices("a", "said", machine="m")),
        (Choices("a", machine=""), False, False, [], Choices("a", machine="n1-standard-4")),
        (Choices("a", machine="m"), False, False, [], Choices("a", machine="m")),
    ],
)  # fmt: skip
def test_what_was_not_said_is_asked_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, given: Choices, package: bool, is_terminal: bool,
    asked: list[tuple[str, str]], found: Choices,
) -> None:  # fmt: skip
    questions = list[tuple[str, str]]()

    def prompt(question: str, *, default: str, err: bool = False) -> str:
        assert err, "standard output is for the diff"
        questions.append((question, default))
        return " said "

    on_terminal(monkeypatch, is_terminal)
    monkeypatch.setattr(typer, "prompt", prompt)
    assert command._asked(given, package=package) == found
    assert questions == asked


@pytest.mark.parametrize(
    ("write", "is_terminal", "yes", "calls"),
    [
        (False, False, True, [("offer", False)]),
        (True, True, True, [("offer", True)]),
        (False, True, False, [("offer", False), "Write these files?"]),
        (False, True, True, [("offer", False), "Write these files?", "write"]),
    ],
)
def test_on_a_terminal_it_is_written_after_a_yes(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    write: bool, is_terminal: bool, yes: bool, calls: list[Any],
) -> None:  # fmt: skip
    done = list[Any]()
    made = SimpleNamespace(write=lambda: done.append("write"))
    handed = list[Any]()

    def confirm(question: str, *, err: bool = False) -> bool:
        assert err
        done.append(question)
        return yes

    def proposal(choices: Choices, where: Path, stack: str, settings: Any) -> Any:
        handed.append((choices, where, stack, settings.stack))
        return made

    on_terminal(monkeypatch, is_terminal)
    monkeypatch.setattr(command, "_proposal", proposal)
    monkeypatch.setattr(command, "offer", lambda _, *, write: done.append(("offer", write)))
    monkeypatch.setattr(typer, "confirm", confirm)
    command.job("fit", ["a", "b"], image="i", machine="m", accelerator="g", accelerators=2,
                replicas=3, timeout="2h", spot=True, write=write)  # fmt: skip
    assert done == calls
    choices = Choices("fit", "i", ("a", "b"), "m", "g", 2, 3, "7200s", True, None)
    assert handed == [(choices, root, "local", "local")]
    told = "Written: fit. Next: `vt up --stack local`.\n" if "write" in calls else ""
    assert capsys.readouterr().err == told
