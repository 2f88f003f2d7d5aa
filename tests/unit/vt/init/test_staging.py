"""Several files are written whole or not at all, and what was interrupted is completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.init import staging
from vertex_training_cli.init.staging import FileChange


def told(refused: pytest.ExceptionInfo[CommandError]) -> tuple[str, str]:
    return refused.value.message, refused.value.hint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "old").write_bytes(b"old")
    (tmp_path / "root" / "gone").write_bytes(b"gone")
    return tmp_path / "root"


CHANGES = (
    FileChange("old", b"old", b"new"),
    FileChange("gone", b"gone", None),
    FileChange("deep/plain", None, b"plain"),
    FileChange("deep/run", None, b"run", executable=True),
)


def content(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


BEFORE = {"old": b"old", "gone": b"gone"}
AFTER = {"old": b"new", "deep/plain": b"plain", "deep/run": b"run"}


@pytest.fixture
def interrupted(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository into which a command wrote nothing but its journal."""
    with monkeypatch.context() as patched:
        patched.setattr(staging, "_complete", interrupt)
        with pytest.raises(KeyboardInterrupt):
            staging.write(root, CHANGES)
    return root


def interrupt(_root: Path) -> None:
    raise KeyboardInterrupt


def test_what_was_interrupted_is_completed_by_a_command_that_writes(interrupted: Path) -> None:
    assert content(interrupted) == BEFORE
    assert staging.is_pending(interrupted)
    with pytest.raises(CommandError) as refused:
        staging.resume(interrupted, write=False)
    assert told(refused) == (
        f"a command was interrupted while it wrote into {interrupted}.",
        "the same with --write completes it",
    )
    assert content(interrupted) == BEFORE
    assert staging.resume(interrupted, write=True) is True
    assert content(interrupted) == AFTER
    assert staging.resume(interrupted, write=True) is False


def test_what_is_done_already_is_left_alone(interrupted: Path) -> None:
    (interrupted / "old").write_bytes(b"new")
    (interrupted / "old").chmod(0o640)
    before = (interrupted / "old").stat().st_ino
    (interrupted / "gone").unlink()
    assert staging.resume(interrupted, write=True)
    assert content(interrupted) == AFTER
    found = (interrupted / "old").stat()
    assert (found.st_ino, found.st_mode & 0o777) == (before, 0o640)


def test_a_user_without_a_folder_for_it_is_told_what_to_set(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(CommandError) as refused:
        staging.journal(root)
    assert told(refused) == (
        "there is no place for the cache: no home", "set VT_CACHE_DIR to a folder."
    )  # fmt: skip


def no_home() -> Path:
    raise RuntimeError("no home")


def test_one_command_at_a_time_writes(root: Path) -> None:
    with staging._lock(root), pytest.raises(CommandError) as refused:
        staging.write(root, CHANGES)
    assert told(refused) == (f"another command writes into {root}.", "wait for it")
    staging.write(root, CHANGES)


def test_what_is_no_file_of_the_repository_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(CommandError) as refused:
        staging.content(root, "link/x")
    what, hint = told(refused)
    assert what.endswith("is a link: nothing is read or written through it.")
    assert hint == "put a file or a folder of the repository in its place"
    with pytest.raises(CommandError) as refused:
        staging.content(root, "old/below")
    assert told(refused)[0] == "old is no folder: nothing is read or written through it."
    with pytest.raises(CommandError) as refused:
        staging.write(tmp_path / "absent", [])
    assert told(refused) == (
        f"{tmp_path}/absent cannot be written: No such file or directory.", "",
    )  # fmt: skip
