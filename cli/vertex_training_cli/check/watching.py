"""``vt check --watch``: check again whenever a file changes. Files are asked for their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

#: How often files are looked at. An editor that saves twice within it is checked once.
SECONDS: Final = 0.3
#: Files below a folder that are looked at.
MAX_FILES: Final = 2_000

#: File -> when it was changed, and its size.
Snapshot = dict[str, tuple[int, int]]


def watched(arguments: Iterable[str], root: Path | None, stack: str) -> Iterator[Path]:
    """The files whose change is a reason to check again: job files, stack files, packages."""
    given = [Path(argument) for argument in arguments]
    if root is not None and (stack or not given):
        yield from root.glob("Pulumi*.yaml")
        given.append(root / "jobs")
    for path in given:
        yield from _inside(path)


def _inside(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for number, found in enumerate(path.rglob("*")):
        if number >= MAX_FILES:
            return
        if "__pycache__" not in found.parts:
            yield found


def snapshot(files: Iterable[Path]) -> Snapshot:
    """The files that are there, as they are now."""
    found: Snapshot = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:  # an editor has it between two names
            continue
        found[str(file)] = status.st_mtime_ns, status.st_size
    return found


def watch(files: Callable[[], Iterable[Path]], check: Callable[[], None]) -> None:
    """Call ``check`` now and after each change, until Ctrl-C."""
    while True:
        seen = snapshot(files())  # before: a change meanwhile is one more reason
        check()
        while snapshot(files()) == seen:
            time.sleep(SECONDS)
