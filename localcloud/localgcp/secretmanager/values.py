"""Values of secrets: ``secrets/PROJECT/SECRET/N`` in the home, readable by its owner alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

#: The most that Secret Manager takes, in bytes (https://docs.cloud.google.com/secret-manager/quotas).
MAX_BYTES: Final = 65_536
LATEST: Final = "latest"


def add_version(folder: Path, project: str, secret: str, value: bytes) -> int:
    """Keep a value as the next version; returns its number. Earlier ones stay.

    ``project`` and ``secret`` are ids. Raises OSError.
    """
    place = folder / project / secret
    for each in (folder, place.parent, place):
        each.mkdir(0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place, prefix=".value-") as part:  # 0600 from the start
        part.write(value)
        part.flush()
        number = max(versions(folder, project, secret), default=0) + 1
        while not _linked(part.name, place / str(number)):
            number += 1
    return number


def versions(folder: Path, project: str, secret: str) -> list[int]:
    """Numbers of the versions that there are, in order."""
    place = folder / project / secret
    names = [each.name for each in place.iterdir()] if place.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def read_version(folder: Path, project: str, secret: str, wanted: str) -> tuple[int, bytes] | None:
    """A version by its number or ``latest``: its number and value. None if there is none."""
    known = versions(folder, project, secret)
    chosen = known[-1:] if wanted == LATEST else [n for n in known if str(n) == wanted]
    if not chosen:
        return None
    return chosen[0], (folder / project / secret / str(chosen[0])).read_bytes()


def _linked(source: str, target: Path) -> bool:
    """Give a file its name: whole or not at all, and never over the version of another command."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    return True
