"""Write several files of a repository: all of them or none, also after a kill.

First all new contents are written into a journal, whose rename is the moment from which the change
counts. Then each file gets its new content at once. Whatever is interrupted after that moment is
completed by the next command that writes. The journal lies in the user's cache: a repository may be
somebody else's, and nothing that it holds says what is to be written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.errors import LocalCloudError, UnsafePathError
from localgcp.home import cache_dir
from localgcp.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training_cli.init.manifest import digest

#: What is said where that was necessary.
COMPLETED: Final = "An earlier `vt init` or `vt upgrade` was interrupted; it is complete now."
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
            if content(root, change.path) != change.before:
                what = f"{change.path} was changed meanwhile; nothing is written."
                raise CommandError(what, "try again")
        _prepare(root, changes)
        _complete(root)


def is_pending(root: Path) -> bool:
    """Whether a command was interrupted while it wrote here."""
    return root.is_dir() and (journal(root) / _PLAN).is_file()


def resume(root: Path, *, write: bool) -> bool:
    """Complete what an interrupted command began; whether there was something.

    Raises:
        CommandError: there is something and nothing may be written, a file was edited in between,
            or one cannot be written.
    """
    if not is_pending(root):
        return False
    if not write:
        what = f"a command was interrupted while it wrote into {root}."
        raise CommandError(what, "the same with --write completes it")
    with _errors(root), _lock(root):
        _complete(root)
    return True


def content(root: Path, path: str) -> bytes | None:
    """What a file holds; None if it is not there.

    Raises:
        CommandError: it cannot be read, or is no file of the repository.
    """
    with _errors(root, "read"):
        return _files(root).read(path)


def journal(root: Path) -> Path:
    """Where a change of the repository at ``root`` is written down; not there between commands.

    Raises:
        CommandError: the user has no folder for it.
    """
    try:
        folder = root.resolve()
        found = folder.stat()
        identity = repr((str(folder), found.st_dev, found.st_ino))
        return cache_dir() / "pending" / hashlib.sha256(identity.encode()).hexdigest()[:32]
    except LocalCloudError as error:
        raise CommandError(error.message, error.hint) from None


def _files(root: Path) -> RootDirectory:
    return RootDirectory(root, refuse_git=True)


def _prepare(root: Path, changes: Sequence[FileChange]) -> None:
    pending = journal(root)
    shutil.rmtree(pending, ignore_errors=True)
    pending.mkdir(0o700, parents=True)
    steps: list[dict[str, Any]] = []
    for number, change in enumerate(changes):
        if change.after is not None:
            (pending / str(number)).write_bytes(change.after)
        here = _files(root).status(change.path)  # the rights of a file that is there stay
        usual = _EXECUTABLE if change.executable else _PLAIN
        steps.append(
            {
                "path": change.path,
                "before": _digest(change.before),
                "after": _digest(change.after),
                "mode": here.st_mode & 0o777 if here else usual,
            }
        )
    partial = pending / f"{_PLAN}.partial"
    partial.write_text(json.dumps(steps))
    partial.rename(pending / _PLAN)


def _complete(root: Path) -> None:
    """Put every file at its place. Those that are there already are left alone."""
    pending = journal(root)
    steps = json.loads((pending / _PLAN).read_text())
    here = [_digest(content(root, step["path"])) for step in steps]
    for step, found in zip(steps, here, strict=True):
        if found not in (step["before"], step["after"]):
            what = f"{step['path']} was edited after a command that wrote it was interrupted."
            raise CommandError(what, f"move your edit away and try again, or remove {pending}")
    for number, (step, found) in enumerate(zip(steps, here, strict=True)):
        if found == step["after"]:
            continue
        if step["after"] is None:
            _files(root).remove(step["path"])
        else:
            new = (pending / str(number)).read_bytes()
            _files(root).write(step["path"], new, step["mode"])
    # The plan goes first: without it, the rest is nobody's.
    (pending / _PLAN).unlink()
    shutil.rmtree(pending, ignore_errors=True)


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
def _errors(root: Path, right: str = "written") -> Iterator[None]:
    """``right``: what cannot be done with the file, ``read`` or ``written``."""
    try:
        yield
    except UnsafePathError as error:
        what = f"{error.filename} {error.strerror}: nothing is read or written through it."
        raise CommandError(what, "put a file or a folder of the repository in its place") from None
    except OSError as error:
        where = error.filename or root
        raise CommandError(f"{where} cannot be {right}: {error.strerror}.") from None
