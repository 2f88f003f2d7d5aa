"""When the lines of a replica's log were written: notes of the runner beside the log.

``NAME.times`` has a line ``SIZE TIME`` for every time the runner saw that ``NAME.log`` had grown.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime
from pathlib import Path


class LogTimes:
    """When the lines of a log were written, to the half second."""

    def __init__(self, path: Path) -> None:
        self._sizes: list[int] = []
        self._times: list[datetime] = []
        try:
            lines = times_file(path).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            size, _, time = line.partition(" ")
            self._sizes.append(int(size))
            self._times.append(datetime.fromisoformat(time))

    def covers(self, end: int) -> bool:
        """Whether a line that ends at this offset has been noted."""
        return bool(self._sizes) and self._sizes[-1] >= end

    def of(self, end: int) -> datetime | None:
        """When the line that ends at this offset was there; None if it was never noted."""
        if not self._times:
            return None
        return self._times[min(bisect_left(self._sizes, end), len(self._times) - 1)]


def times_file(log: Path) -> Path:
    """The file with the times of a log."""
    return log.with_suffix(".times")
