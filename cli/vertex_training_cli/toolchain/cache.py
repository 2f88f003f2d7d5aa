"""The cache outside of the checkout. One setup at a time writes it, and entries appear complete."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import SetupError

#: Prefix of folders that :func:`publish` fills.
UNFINISHED: Final = "unfinished-"


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the cache; the system releases it when the holding process dies.

    Raises:
        SetupError: the cache cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "setup.lock").open("w")
    except OSError as error:
        raise SetupError(
            f"cannot write the cache {folder}: {error.strerror}",
            hint="set VT_CACHE_DIR to a folder that can be written",
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("  waiting for another setup on this machine ...", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        for unfinished in folder.glob(UNFINISHED + "*"):  # of a setup that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
        yield


def publish(target: Path, fill: Callable[[Path], None]) -> None:
    """Create ``target`` atomically: ``fill`` a folder beside it, then rename that folder.

    The caller must hold the lock.
    """
    workspace = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
    try:
        fill(workspace)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(workspace, target)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def place(source: Path, target: Path) -> None:
    """Put a cached file at ``target`` atomically: a hard link where possible, else a copy.

    A symbolic link does not work: the engine resolves it and looks for plugins beside its target.
    """
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    try:
        os.link(source, beside)
    except OSError:
        shutil.copy2(source, beside)
    os.replace(beside, target)


def link(source: Path, target: Path) -> None:
    """Make ``target`` a symbolic link to ``source``; replace an existing file."""
    beside = target.with_name(f".{target.name}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(source)
    os.replace(beside, target)
