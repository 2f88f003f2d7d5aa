"""Processes the server starts: told apart from others, ended as groups, found after a crash.

A process id alone proves nothing, because ids are used again: a process is the pair of its id and
its start time. Each child has a file `run/<pid>.json`, so that the next server can end what a
killed one left behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.02


def start_time(pid: int) -> str | None:
    """A value that differs between two processes of the same id; None if there is none.

    A zombie counts as gone: it runs nothing and holds nothing.
    """
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():  # Linux
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] == "Z" else fields[19]
    listed = subprocess.run(
        ["ps", "-o", "lstart=", "-o", "stat=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return None if not listed or listed.split()[-1].startswith("Z") else listed.rpartition(" ")[0]


def program(pid: int) -> str | None:
    """Name of the program that a process runs; None if there is no such process."""
    if start_time(pid) is None:
        return None
    comm = Path(f"/proc/{pid}/comm")
    try:
        return comm.read_text().strip()
    except (FileNotFoundError, ProcessLookupError):  # it just ended, or this is not Linux
        listed = subprocess.run(
            ["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return Path(listed.stdout.strip()).name or None


@dataclass(frozen=True)
class Child:
    """A process that was started as the leader of its own session."""

    pid: int
    started: str
    role: str

    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def end(self, grace_seconds: float) -> None:
        """SIGTERM to the whole group, SIGKILL after the grace period; returns when it is gone."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while self.alive() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        self._signal(signal.SIGKILL)
        while self.alive():
            time.sleep(_POLL_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        # The group can outlive its leader (a shell that put work in the background), and while it
        # does, the kernel does not give its id away.
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def register(folder: Path, pid: int, role: str) -> Child:
    """Write down a child that was just started."""
    child = Child(pid, start_time(pid) or "gone", role)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{pid}.json"
    partial = target.with_suffix(".tmp")
    partial.write_text(json.dumps(vars(child)))
    partial.replace(target)
    return child


def forget(folder: Path, child: Child) -> None:
    """Remove the note of a child that ended."""
    (folder / f"{child.pid}.json").unlink(missing_ok=True)


def leftovers(folder: Path) -> list[Child]:
    """Children that are noted and still alive; notes of dead ones are removed."""
    alive: list[Child] = []
    for note in sorted(folder.glob("*.json")):
        child = Child(**json.loads(note.read_text()))
        if child.alive():
            alive.append(child)
        else:
            note.unlink(missing_ok=True)
    return alive


def end_leftovers(folder: Path, grace_seconds: float = 3.0) -> list[Child]:
    """End what a killed server left running; returns what was ended."""
    found = leftovers(folder)
    for child in found:
        child.end(grace_seconds)
        forget(folder, child)
    return found
