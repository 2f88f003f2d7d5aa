"""Options of ``vt check`` that exclude one another, and what a mending and a watch say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CheckUnavailableError
from vertex_training_cli.check import checking, command
from vertex_training_cli.check.command import FindingFormat, Task

PLAIN = Task([], "", FindingFormat.TEXT, False, False, False, False, False)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"ask_registries": True}, "--registry needs --stack: images are a stack's"),
        ({"ask_registries": True, "stack": "dev"}, ""),
        ({"dry_run": True}, "--dry-run belongs to --fix"),
        ({"fix": True, "watch": True}, "choose one of --fix and --watch"),
        ({"fix": True, "format": FindingFormat.JSON}, "--fix shows a diff: it takes no --format"),
        ({"fix": True, "files": ["a", "-"]}, "--fix is for files, not for standard input"),
    ],
)
def test_what_cannot_be_combined_is_refused_with_its_reason(
    asked: dict[str, Any], text: str
) -> None:
    task = replace(PLAIN, **asked)
    if not text:
        task.ensure_possible()
        return
    with pytest.raises(CheckUnavailableError) as refused:
        task.ensure_possible()
    assert str(refused.value) == text


def test_a_watch_says_what_it_waits_for_and_goes_on_after_a_file_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.time, "strftime", lambda form: f"now as {form}")
    watched: list[Any] = []

    def watch(files: Any, check: Any) -> None:
        watched.append(list(files()))
        check()
        raise KeyboardInterrupt

    monkeypatch.setattr(command.watching, "watch", watch)
    with pytest.raises(KeyboardInterrupt):
        command._watch(replace(PLAIN, files=["gone.yaml"], watch=True))
    assert watched == [[Path("gone.yaml")]]
    assert capsys.readouterr().err == (
        "vt check: gone.yaml: no such file\n[now as %H:%M:%S] waiting for changes; Ctrl-C ends\n"
    )


def test_without_a_folder_of_jobs_files_must_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckUnavailableError) as refused:
        command._whole_reports([], "", ask_registries=False)
    assert str(refused.value) == "name the files to check: there is no folder jobs here"
    with pytest.raises(CheckUnavailableError) as refused:
        command._whole_reports([], "dev", ask_registries=False)
    assert str(refused.value) == "no Pulumi.yaml here or above: --stack needs a project"


def test_files_are_named_once_in_the_order_of_the_line(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "note.txt", "x.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "sub.yaml").mkdir()
    last, note = str(tmp_path / "b.yaml"), str(tmp_path / "note.txt")
    assert checking.files_of([last, str(tmp_path), note, "-", last]) == [
        last, str(tmp_path / "a.yml"), note, "-",
    ]  # fmt: skip
    with pytest.raises(CheckUnavailableError) as refused:
        checking.files_of([str(tmp_path / "sub.yaml")])
    assert str(refused.value) == "there is no job file to check"
    with pytest.raises(CheckUnavailableError) as refused:
        checking.files_of([str(tmp_path / "gone")])
    assert str(refused.value) == f"{tmp_path / 'gone'}: no such file"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckUnavailableError) as refused:
        checking.read(str(tmp_path))
    assert str(refused.value) == f"{tmp_path}: Is a directory"
