"""Log of one replica: what its process wrote, and the runner's own lines between."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO


class JobLog:
    """Appends to one file. The process writes into the same file by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def append(self, text: str) -> None:
        """Append lines of the runner, marked to distinguish them from the program's."""
        time = datetime.now(UTC).strftime("%H:%M:%S")
        lines = "".join(f"[local {time}] {line}\n" for line in text.splitlines())
        with self.path.open("a", encoding="utf-8") as log:
            log.write(lines)

    def open(self) -> BinaryIO:
        """For a process to write to."""
        return self.path.open("ab")
