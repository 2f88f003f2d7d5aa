"""Three texts -> one: the text as it was written, with the edits of two sides, by git."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Names of the two sides in conflict markers.
MINE: Final = "this repository"
BASE: Final = "as it was written"
#: git-merge-file(1): the number of conflicts, at most 127; more is an error.
_MOST_CONFLICTS: Final = 127


@dataclass(frozen=True, slots=True)
class Merge:
    """What came of it."""

    text: str
    """With conflict markers around the places that both sides changed."""
    conflicts: bool


def merge(base: str, mine: str, theirs: str, name: str) -> Merge:
    """``mine`` with the changes from ``base`` to ``theirs``; ``name`` is that side in markers.

    Without git, only what one side alone changed is merged; else ``theirs`` is the text, and it
    counts as a conflict.
    """
    if mine in (base, theirs):
        return Merge(theirs, conflicts=False)
    if theirs == base:
        return Merge(mine, conflicts=False)
    git = shutil.which("git")
    found = _merge_by_git(git, base, mine, theirs, name) if git else None
    return found or Merge(theirs, conflicts=True)


def _merge_by_git(git: str, base: str, mine: str, theirs: str, name: str) -> Merge | None:
    """None if git cannot merge them, which it says of binary files."""
    with tempfile.TemporaryDirectory(prefix="vt-merge-") as folder:
        files = [Path(folder, side) for side in ("mine", "base", "theirs")]
        for file, text in zip(files, (mine, base, theirs), strict=True):
            file.write_bytes(text.encode())
        labels = [word for label in (MINE, BASE, name) for word in ("-L", label)]
        done = subprocess.run(
            [git, "merge-file", "-p", *labels, *map(str, files)],
            capture_output=True,
            check=False,
        )
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        return None
    return Merge(done.stdout.decode(), conflicts=done.returncode > 0)
