"""Write times of a replica's log lines, which the runner records beside the log.

``NAME.times`` has a line ``SIZE TIME`` for every time the runner saw that ``NAME.log`` had grown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path


def read_lines(log: Path, created: datetime, *, ended: bool) -> Iterator[tuple[int, str, datetime]]:
    """Yield number, text and time of each line of a log.

    A line without a noted time is a millisecond after the one before, from ``created`` on. The
    rest after the last line end counts only in the log of a job that has ended.
    """
    lines, end = log.read_bytes().split(b"\n"), 0
    sizes, times = _noted(log)
    if not lines[-1] or not ended:
        lines.pop()
    for number, line in enumerate(lines):
        end += len(line) + 1
        time = created + timedelta(milliseconds=number)
        if times:
            time = times[min(bisect_left(sizes, end), len(times) - 1)]
        yield number, line.decode(errors="replace"), time


def _noted(log: Path) -> tuple[list[int], list[datetime]]:
    try:
        notes = times_file(log).read_text(encoding="ascii").split("\n")
    except FileNotFoundError:
        return [], []
    pairs = [note.partition(" ") for note in notes if note]
    return [int(size) for size, _, _ in pairs], [datetime.fromisoformat(t) for _, _, t in pairs]


def times_file(log: Path) -> Path:
    """Return the file with the times of a log."""
    return log.with_suffix(".times")
