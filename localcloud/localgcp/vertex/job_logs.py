"""The log of one replica: its process's output, interleaved with lines of the runner.

Processes write without times. So the runner writes ``SIZE TIME`` to ``NAME.times`` when
``NAME.log`` has grown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from localgcp.home import Home
from localgcp.system.root_directory import make_folder


class JobLog:
    """Appends lines to the log file of a process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        self._stamped = 0

    def append(self, text: str) -> None:
        """Append lines of the runner, with a mark and the time."""
        time = datetime.now(UTC).strftime("%H:%M:%S")
        lines = "".join(f"[local {time}] {line}\n" for line in text.splitlines())
        with self.path.open("a", encoding="utf-8") as log:
            log.write(lines)
        self.stamp()

    def open(self) -> BinaryIO:
        return self.path.open("ab")

    def stamp(self) -> None:
        """Record the current time for new lines of the log."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        if size > self._stamped:
            self._stamped = size
            with times_file(self.path).open("a", encoding="ascii") as times:
                times.write(f"{size} {datetime.now(UTC).isoformat()}\n")


def log_path(home: Home, job_id: str, replica_name: str) -> Path:
    """Return the path of a replica's log; the file may not exist yet."""
    return home.jobs / job_id / "logs" / f"{replica_name}.log"


def read_lines(log: Path, created: datetime, *, ended: bool) -> Iterator[tuple[int, str, datetime]]:
    """Yield number, text and time of each line of a log.

    Lines without a recorded time are a millisecond apart, from ``created`` on. An incomplete last
    line counts only if the job has ended.
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
    """Return the file with the write times of a log's lines."""
    return log.with_suffix(".times")
