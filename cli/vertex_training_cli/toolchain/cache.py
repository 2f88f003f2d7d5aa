"""The cache outside of the checkout. One setup at a time writes it, and entries appear complete."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.console import Heartbeat, SetupError

POLL_SECONDS: Final = 0.2
#: Prefix of folders that :func:`publish` fills.
UNFINISHED: Final = "unfinished-"


@contextlib.contextmanager
def lock(folder: Path, limit: float = 1800.0) -> Iterator[None]:
    """Hold the lock of the cache; the system releases it when the holding process dies.

    Raises:
        SetupError: the cache cannot be written, or another setup holds the lock for too long.
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
        _wait_for(handle.fileno(), limit)
        for unfinished in folder.glob(UNFINISHED + "*"):  # of a setup that was killed
            shutil.rmtree(unfinished, ignore_errors=True)
        yield


def _wait_for(handle: int, limit: float) -> None:
    heartbeat = Heartbeat("waiting for another setup on this machine")
    started = last = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if now - started > limit:
                raise SetupError(
                    f"another setup has held the cache for {limit:.0f} s",
                    hint="end it, then run this again",
                ) from None
            if now - last >= heartbeat.period:
                heartbeat.beat(now - started)
                last = now
            time.sleep(POLL_SECONDS)
        else:
            heartbeat.clear()
            return


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
