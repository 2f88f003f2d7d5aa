"""Files that a job wrote below ``/gcs`` and that are in no bucket: they fail it.

Else the job would end SUCCEEDED with its output lost. Where a job has no ``/gcs`` of its own, a
path that code makes while it runs leads to this machine's: what is new there is the job's. Where it
has one, it may write beside all buckets.
"""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path
from typing import Final

#: Where the service mounts buckets.
ROOT: Final = Path("/gcs")
#: More files are not looked at: somebody has mounted something there.
_MOST: Final = 5_000
_NAMED: Final = 3


class RootWatch:
    """What lies below ``root`` now, to be compared at the end of a job."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = ROOT if root is None else root
        self._before = _scan(self._root)

    def written(self) -> list[str]:
        """Files that are new or changed since; none where there are too many to look at."""
        now = _scan(self._root)
        if self._before is None or now is None:
            return []
        return sorted(path for path, stamp in now.items() if self._before.get(path) != stamp)


def outside_of(gcs: Path, buckets: Container[str]) -> list[str]:
    """Files in a folder that stands for ``/gcs`` and in none of its buckets, as the job names them.

    Names that begin with a dot are no buckets: what the local cloud itself puts there.
    """
    found: list[str] = []
    for entry in sorted(gcs.iterdir()):
        if entry.name in buckets or entry.name.startswith("."):
            continue
        folder = entry.is_dir() and not entry.is_symlink()
        below = entry.rglob("*") if folder else [entry]
        found += [f"/gcs/{x.relative_to(gcs)}" for x in below if x.is_symlink() or x.is_file()]
    return sorted(found)


def explain_outside(written: list[str]) -> str:
    """Why a job with such files failed."""
    return (
        f"The job wrote {_some(written)}, which reached no bucket: the local cloud has none by "
        "this name, the job's account may not use it, or a container does not name it. "
        "Hint: correct the name, grant roles/storage.objectUser, or pass the path as an argument."
    )


def explain(written: list[str]) -> str:
    """Why a job with these files failed."""
    return (
        f"The job wrote {_some(written)} on this machine, not into a bucket: "
        "the local cloud replaces /gcs in command, args and env, not in paths that code makes. "
        "Hint: take the path from an argument or a variable, such as AIP_MODEL_DIR, or run the job "
        "in a container."
    )


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"


def _scan(root: Path) -> dict[str, tuple[int, int]] | None:
    """Files below ``root`` by path, with time of change and size; None if there are too many."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, names in os.walk(root):
        # A link to a folder is no folder here.
        for name in (*names, *(x for x in folders if os.path.islink(os.path.join(folder, x)))):
            path = os.path.join(folder, name)
            try:
                stat = os.lstat(path)
            except OSError:  # removed since it was listed
                continue
            found[path] = (stat.st_mtime_ns, stat.st_size)
            if len(found) > _MOST:
                return None
    return found
