"""Which file a problem is reported with, by which name, and what a registry is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError, Location, Problem
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
