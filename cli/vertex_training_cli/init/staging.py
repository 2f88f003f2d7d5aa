"""Write several files of a repository: all of them or none, also after a kill.

First all new contents are written into a folder of their own in the repository, with a plan, whose
rename is the moment from which the change counts. Then each file is renamed to its place. Whatever
is interrupted after that moment is completed by the next command that writes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.init.manifest import digest

PENDING: Final = ".vertex-training.pending"
_PLAN: Final = "plan.json"
_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a file was when it was shown, and what it is to be. None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    executable: bool = False


def write(root: Path, changes: Sequence[FileChange]) -> None:
    """Write all changes, or nothing.

    Raises:
        CommandError: a file is no longer what it was, cannot be written, or another command
            writes here.
    """
    with _errors(root), _lock(root):
        for change in changes:
            _ensure_inside(root, change.path)
            if content(root, change.path) != change.before:
                what = f"{change.path} was changed meanwhile; nothing is written."
                raise CommandError(what, "try again")
        _prepare(root, changes)
        _complete(root)


def resume(root: Path) -> bool:
    """Complete what an interrupted command began; whether there was something.

    Raises:
        CommandError: a file was edited in between, or cannot be written.
    """
    if not (root / PENDING).is_dir():
        return False
    with _errors(root), _lock(root):
        if not (root / PENDING / _PLAN).is_file():  # it was interrupted before it counted
            shutil.rmtree(root / PENDING, ignore_errors=True)
            return False
        _complete(root)
    return True


def content(root: Path, path: str) -> bytes | None:
    """What a file holds; None if it is not there.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return (root / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None


def _prepare(root: Path, changes: Sequence[FileChange]) -> None:
    pending = root / PENDING
    shutil.rmtree(pending, ignore_errors=True)
    pending.mkdir()
    steps = []
    for number, change in enumerate(changes):
        if change.after is not None:
            (pending / str(number)).write_bytes(change.after)
            (pending / str(number)).chmod(_mode(root / change.path, executable=change.executable))
        steps.append(
            {"path": change.path, "before": _digest(change.before), "after": _digest(change.after)}
        )
    partial = pending / f"{_PLAN}.partial"
    partial.write_text(json.dumps(steps))
    partial.rename(pending / _PLAN)


def _mode(path: Path, *, executable: bool) -> int:
    """The rights of a file that is there stay."""
    if path.is_file():
        return path.stat().st_mode & 0o777
    return _EXECUTABLE if executable else _PLAIN


def _complete(root: Path) -> None:
    """Put every file at its place. Those that are there already are left alone."""
    pending = root / PENDING
    steps = json.loads((pending / _PLAN).read_text())
    for step in steps:
        _ensure_inside(root, step["path"])
        if _digest(content(root, step["path"])) not in (step["before"], step["after"]):
            what = f"{step['path']} was edited after a command that wrote it was interrupted."
            hint = f"move your edit away and try again, or remove the folder {PENDING}"
            raise CommandError(what, hint)
    for number, step in enumerate(steps):
        _place(root, pending / str(number), step)
    # The plan goes first: without it, the rest is nobody's.
    (pending / _PLAN).unlink()
    shutil.rmtree(pending, ignore_errors=True)


def _place(root: Path, new: Path, step: Mapping[str, Any]) -> None:
    target = root / step["path"]
    if step["after"] is None:
        target.unlink(missing_ok=True)
    elif new.is_file():  # else it was renamed before the kill
        target.parent.mkdir(parents=True, exist_ok=True)
        new.replace(target)


def _ensure_inside(root: Path, path: str) -> None:
    """Refuse a path of which a part is a link: the file would be written somewhere else."""
    for part in (root / path, *(root / path).parents):
        if part == root:
            return
        if part.is_symlink():
            shown = part.relative_to(root)
            what = f"{shown} is a link: {path} would be written somewhere else."
            raise CommandError(what, "put a file or a folder in its place")
        if part != root / path and part.exists() and not part.is_dir():
            what = f"{part.relative_to(root)} is a file: {path} needs a folder there."
            raise CommandError(what, "move it away")
    raise CommandError(f"{path} is outside of {root}.")


def _digest(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """One command at a time writes into a repository."""
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"another command writes into {root}.", "wait for it") from None
        yield
    finally:
        os.close(folder)


@contextmanager
def _errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or root
        raise CommandError(f"{where} cannot be written: {error.strerror}.") from None
