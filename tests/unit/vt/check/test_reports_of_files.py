"""Which file a problem is reported with, by which name, and what a registry is asked for."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CheckUnavailableError, CommandError, Location, Problem
from vertex_training.located_yaml import document
from vertex_training_cli.check import checking, command
from vertex_training_cli.check.report import FileReport
from vertex_training_cli.images import checking as image_checks
from vertex_training_cli.images import connection


def places(reports: list[FileReport]) -> list[tuple[str, int, int, str]]:
    return [
        (report.file, each.line, each.column, each.message)
        for report in reports
        for each in report.findings
    ]


STACK = Problem("wrong", location=Location("Pulumi.dev.yaml", 2, 3))
TASK = Problem("no code", location=Location("jobs/task.py", 1, 1))
FOLDER = Problem("empty", location=Location("jobs/none"))
NOWHERE = Problem("missing")


@pytest.mark.parametrize(
    ("cwd", "stack", "task"),
    [(".", "Pulumi.dev.yaml", "jobs/task.py"), ("jobs", "{root}/Pulumi.dev.yaml", "task.py")],
)
def test_a_problem_is_reported_with_its_file_as_seen_from_here(
    project: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, stack: str, task: str
) -> None:
    stack = stack.format(root=project)
    (project / "jobs" / "task.py").write_text("password\n")
    monkeypatch.chdir(project / cwd)
    found = checking._of_config(project, "dev", [TASK, STACK, FOLDER, NOWHERE])
    assert places(found) == [
        (stack, 1, 1, "jobs/none: empty."),
        (stack, 1, 1, "missing."),
        (stack, 2, 3, "wrong."),
        (task, 1, 1, "no code."),
    ]
    # The stack's file is quoted, and no other one.
    assert found[0].source[0] == "config:"
    assert found[1].source == ("",)


def test_without_a_problem_of_the_stack_file_it_has_no_report(project: Path) -> None:
    (project / "jobs" / "task.py").write_text("")
    assert [each.file for each in checking._of_config(project, "dev", [TASK])] == ["jobs/task.py"]
    assert checking._of_config(project, "dev", []) == []


def test_a_file_of_two_jobs_has_the_problems_of_both_once(project: Path) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(
        f"{stack.read_text()}    again: {{file: jobs/train.yaml}}\n"
        "    third: {file: jobs/train.yaml}\n"
    )
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text().replace("/a/${job.requestId}", "/a").replace("images", "image"))
    [report] = checking.check_in_stack(["jobs/train.yaml"], project, "dev")
    told = [each.message for each in report.findings if each.level == "error"]
    assert sum("image.trainer" in each for each in told) == 1
    writers = [each.split("'")[1] for each in told if "writes there too" in each]
    assert sorted(writers) == ["again", "third", "train"]


def test_standard_input_is_no_file_of_a_job(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (project / "jobs" / "train.yaml").read_bytes().replace(b"buckets.data", b"buckets.dat")
    stdin = SimpleNamespace(buffer=io.BytesIO(data))
    monkeypatch.setattr(checking, "sys", SimpleNamespace(stdin=stdin))
    [report] = checking.check_in_stack(["-"], project, "dev")
    assert report.file == "<stdin>"
    assert [each.message.partition(" Hint: ")[2] for each in report.findings] == [
        "did you mean 'buckets.data'?"
    ]


@pytest.mark.parametrize(
    ("file", "name", "job"),
    [
        ("-", "<stdin>", "stdin"),
        ("jobs/train.yaml", "jobs/train.yaml", "train"),
        ("a.b.yaml", "a.b.yaml", "a.b"),
        ("x" * 41, "x" * 41, "x" * 40),
    ],
)
def test_a_file_has_a_name_and_a_job(file: str, name: str, job: str) -> None:
    assert (checking.name(file), checking.job(file)) == (name, job)


def test_what_is_read_of_a_file_is_bounded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checking.MAX_READ == 33_554_432
    monkeypatch.setattr(checking, "MAX_READ", 3)
    (project / "a").write_bytes(b"abcd")
    assert checking.read("a") == b"abc"
    with pytest.raises(CheckUnavailableError, match=r"^gone: No such file or directory$"):
        checking.read("gone")


def test_what_is_quoted_is_text_whatever_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_BYTES", 6)
    assert checking._text(b"\xef\xbb\xbfa\xffbc") == "a�b"


@pytest.mark.parametrize("runs", [True, False])
def test_registries_are_asked_for_the_images_of_the_stack(
    project: Path, monkeypatch: pytest.MonkeyPatch, runs: bool
) -> None:
    calls = list[Any]()

    def connect(ref: Any, tell: Any, *, start: bool) -> None:
        calls.append(("connect", ref.stack, tell("x"), start))
        if not runs:
            raise CommandError("the local cloud does not run")

    def problems(settings: Any, root: Path) -> list[Problem]:
        calls.append(("images", list(settings.images), root))
        return [Problem("not there", path=("images", "trainer"))]

    monkeypatch.setattr(connection, "connect", connect)
    monkeypatch.setattr(image_checks, "problems", problems)
    found = checking.check_in_stack([], project, "dev", ask_registries=True)
    assert calls == [("connect", "dev", None, False), ("images", ["trainer"], project)]
    # The entry of the image, on line 11 of the stack's file.
    assert [each[:3] for each in places(found)] == [("Pulumi.dev.yaml", 11, 5)]
    assert "not there" in places(found)[0][3]
    by_command = command._whole_reports([], "dev", ask_registries=True)
    assert places(by_command) == places(found)
    calls.clear()
    assert places(checking.check_in_stack([], project, "dev")) == []
    assert places(command._whole_reports([], "dev", ask_registries=False)) == []
    assert calls == []


def test_a_name_of_any_bytes_can_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    command._accept_any_name()
    for stream in (sys.stdout, sys.stderr):
        stream.write("é\udcff")
        stream.flush()
        assert stream.buffer.getvalue() == b"\\xe9\\udcff"  # type: ignore[attr-defined]
