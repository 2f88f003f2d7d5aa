"""Files that a job wrote below the machine's own ``/gcs``: they are in no bucket.

``/gcs`` in a command, an argument or a variable becomes a folder of the job. A path that code makes
while it runs does not: where the user may write to ``/``, such a file lies on this machine, and the
job would end SUCCEEDED with its output lost. So what is new there fails the job.
"""

from __future__ import annotations

import os
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


def explain(written: list[str]) -> str:
    """Why a job with these files failed."""
    more = f" and {len(written) - _NAMED} more" if len(written) > _NAMED else ""
    return (
        f"The job wrote {', '.join(written[:_NAMED])}{more} on this machine, not into a bucket: "
        "the local cloud replaces /gcs in command, args and env, not in paths that code makes. "
        "Hint: take the path from an argument or a variable, such as AIP_MODEL_DIR, or run the job "
        "in a container."
    )


def _scan(root: Path) -> dict[str, tuple[int, int]] | None:
    """Files below ``root`` by path, with time of change and size; None if there are too many."""
    found: dict[str, tuple[int, int]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            try:
                stat = os.lstat(path)
            except OSError:  # removed since it was listed
                continue
            found[path] = (stat.st_mtime_ns, stat.st_size)
            if len(found) > _MOST:
                return None
    return found
