"""Wheels that were built of packages, kept by content: trials of one job have the same packages.

Building runs the code of a package, which takes longer than installing what came of it. A wheel is
built anew when a package, its name or the executor changes.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from localcloud.errors import JobCancelledError

#: Seconds between two looks at the cancel, while another job builds the same.
_LOOK_SECONDS: Final = 0.1


class WheelStore:
    """A folder a set of packages, named by its digest; one server at a time uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def built(
        self,
        executor: str,
        files: Sequence[Path],
        build: Callable[[Path], None],
        cancelled: threading.Event,
    ) -> list[Path]:
        """The wheels of these packages; ``build`` writes them into a folder, if they are not there.

        Raises what ``build`` raises, and JobCancelledError while another job builds the same.
        """
        key = _digest(executor, files)
        target = self._folder / key
        lock = _locks[key]
        while not lock.acquire(timeout=_LOOK_SECONDS):
            if cancelled.is_set():
                raise JobCancelledError
        try:
            if not target.is_dir():
                partial = target.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)  # of a server that was killed
                partial.mkdir(parents=True)
                build(partial)
                partial.rename(target)  # all or nothing
        finally:
            lock.release()
        return sorted(target.glob("*.whl"))


#: Of this process: a lock a digest.
_locks: Final[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)


def _digest(executor: str, files: Sequence[Path]) -> str:
    found = hashlib.sha256(executor.encode())
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        found.update(f"\0{file.name}\0{content}".encode())
    return found.hexdigest()
