"""``vt init`` and ``vt upgrade`` write all files or none, also after a kill."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.init.changes import MergeResult, merge

GIVEN = ("--project", "acme-ml-dev", "--number", "210987654321")
MANIFEST = ".vertex-training.json"


def vt(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def make(folder: Path, *more: str) -> Path:
    vt("init", folder, *GIVEN, *more)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def kill(
    monkeypatch: pytest.MonkeyPatch, owner: object, call: str, at: int, *words: object
) -> None:
    """Run a command that is killed at the ``at``-th call, such as a rename of a file."""
    real, calls = getattr(owner, call), iter(range(1, 1000))

    def killed(*given: object, **more: object) -> object:
        if next(calls) == at:
            raise KeyboardInterrupt
        return real(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(owner, call, killed)
        CliRunner().invoke(app, [str(each) for each in words])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("made") / "x")


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A repository of an earlier release: each of its files was one line longer."""
    root = shutil.copytree(made, tmp_path / "x")
    document = json.loads((root / MANIFEST).read_text())
    document["release"] = "0.0.1"
    document["files"]["gone"] = dict(document["files"]["Makefile"])
    (root / "gone").write_text(document["files"]["gone"]["text"])
    (root / "requirements.txt").chmod(0o640)
    for name in ("README.md", "pytest.ini"):
        del document["files"][name]
        (root / name).unlink()
    (root / MANIFEST).write_text(json.dumps(document))
    return root


@pytest.mark.parametrize("at", range(1, 38, 3))
def test_killed_init_is_completed_or_undone_by_the_next_one(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    root = tmp_path / "x"
    kill(monkeypatch, os, "replace", at, "init", root, *GIVEN)
    if not (root / MANIFEST).exists():
        vt("init", root, *GIVEN)
    assert files(root) == files(made)


def test_init_killed_before_its_first_file_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(monkeypatch, Path, "rename", 1, "init", tmp_path / "x", *GIVEN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", range(1, 5))
def test_killed_upgrade_is_completed_only_by_a_command_that_writes(
    made: Path, root: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    before = {name: text for name, text in files(root).items() if name != MANIFEST}
    kill(monkeypatch, os, "replace", at, "upgrade", root, "--write")
    if at < 4:
        half = files(root)
        assert [name for name in before if half.get(name, b"") not in (b"", before[name])] == []
        hint = "the same with --write completes it"
        assert hint in vt("upgrade", root, code=2)
        assert hint in vt("init", root, "--environment", "qa", code=2)
        assert files(root) == half
        assert "it is complete now" in vt("upgrade", root, "--write")
    assert files(root) == files(made)
    assert (root / "requirements.txt").stat().st_mode & 0o777 == 0o640
    assert list(Path(os.environ["VT_CACHE_DIR"], "pending").glob("*")) == []


def test_edit_after_a_kill_is_not_overwritten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill(monkeypatch, os, "replace", 1, "upgrade", root, "--write")
    (root / "pytest.ini").write_text("mine\n")
    said = vt("upgrade", root, "--write", code=2)
    assert "pytest.ini was edited after a command that wrote it was interrupted" in said
    assert (root / "pytest.ini").read_text() == "mine\n"
    assert (root / "gone").exists()


def test_file_that_changes_after_the_diff_is_not_overwritten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def edit(*given: int) -> None:
        (root / "gone").write_text("mine\n")
        flock(*given)

    monkeypatch.setattr(fcntl, "flock", edit)
    said = vt("upgrade", root, "--write", code=2)
    assert said.endswith("vt upgrade: gone was changed meanwhile; nothing is written. "
                         "Hint: try again\n")  # fmt: skip
    assert (root / "gone").read_text() == "mine\n"
    assert not (root / "pytest.ini").exists()


def test_one_command_at_a_time_writes(root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        assert f"another command writes into {root}" in vt("upgrade", root, "--write", code=2)
    finally:
        os.close(folder)


def test_user_without_a_cache_folder_must_name_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Path:
        raise RuntimeError("no home")

    for name in ("VT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", fail)
    said = vt("upgrade", root, "--write", code=2)
    assert "there is no place for the cache: no home" in said
    assert "set VT_CACHE_DIR to a folder" in said


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ("a", "a", "b", MergeResult("b", False)),
        ("a", "b", "b", MergeResult("b", False)),
        ("a", "b", "a", MergeResult("b", False)),
        ("a\n\n\n\nb\n", "A\n\n\n\nb\n", "a\n\n\n\nB\n", MergeResult("A\n\n\n\nB\n", False)),
        ("a\0", "b\0", "c\0", MergeResult("c\0", True)),
    ],
)  # fmt: skip
def test_three_texts_are_merged(base: str, mine: str, theirs: str, merged: MergeResult) -> None:
    assert merge(base, mine, theirs, "new") == merged
