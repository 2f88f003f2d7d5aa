"""Folders that a build works in. What a killed build left is removed by the next one.

A process holds a lock on its folder, which the kernel releases when it dies, however that was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "vt-image-build-"


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for this user alone, removed at the end.

    Raises:
        OSError: it cannot be made.
    """
    folder, handle = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def remove_abandoned() -> None:
    """Remove this user's folders that no living process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = _lock(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _make() -> tuple[Path, int]:
    """A folder and its lock. One that was taken for abandoned before it was locked is made anew."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with suppress(OSError):
            handle = _lock(folder)
            if folder.exists():
                return folder, handle
            os.close(handle)


def _lock(folder: Path) -> int:
    """A handle that holds the folder. Raises OSError if another one does, or it is not ours."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(folder)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
