"""The log of one replica: its process's output, interleaved with lines of the runner.

Beside ``NAME.log``, ``NAME.times`` says when the log had which length, so that the lines of several
replicas can be put in order: the process writes into the file by itself, without times.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from localgcp.home import Home
from localgcp.system.root_directory import make_folder
from localgcp.vertex.log_times import times_file


class JobLog:
    """Appends to one log file, to which the process writes too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        self._stamped = 0

    def append(self, text: str) -> None:
        """Append lines of the runner, marked as such: the program writes to the same log."""
        time = datetime.now(UTC).strftime("%H:%M:%S")
        lines = "".join(f"[local {time}] {line}\n" for line in text.splitlines())
        with self.path.open("a", encoding="utf-8") as log:
            log.write(lines)
        self.stamp()

    def open(self) -> BinaryIO:
        """Open the log for a process's output."""
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
