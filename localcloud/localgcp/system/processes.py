"""Child processes of the server: their identity, how they end, and records for the next server.

A process id alone identifies nothing, because ids are reused: a process is the pair of its id and
its start time. Each child has a file ``run/<pid>.json``, so that the next server can end the
children of a killed one.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    import psutil

_POLL_SECONDS: Final = 0.02
#: Maximum process id on Linux; other systems have lower ids.
_MAX_ID: Final = 1 << 22
#: Time limit for the end of a killed process, which may be in the kernel.
_KILL_SECONDS: Final = 5.0


def is_process_id(value: object) -> bool:
    """Return whether a value from a file is safe to signal: 0, 1 and -1 mean many processes."""
    return type(value) is int and 1 < value <= _MAX_ID


def wait_until(holds: Callable[[], object], seconds: float = math.inf) -> bool:
    """Wait until ``holds`` returns true, at most ``seconds``; return whether it did."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return bool(answer)


def start_time(pid: int) -> str | None:
    """Return a value that distinguishes processes of the same id; None if the process ended.

    A zombie counts as gone: it runs nothing and holds nothing.
    """
    import psutil  # imported here: it takes 30 ms, and most commands ask about no process

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        created = process.create_time()
    except psutil.Error:
        return None
    # On Linux, both times move when the system clock is set; their difference does not.
    return f"{created - psutil.boot_time() if psutil.LINUX else created:.2f}"


def runs(pid: int, *words: str) -> bool:
    """Return whether the command line of a process has all these words."""
    import psutil

    try:
        return set(words) <= set(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def program(pid: int) -> str | None:
    """Return the name of a process's program; None if the process does not exist."""
    import psutil

    if start_time(pid) is None:
        return None
    try:
        return psutil.Process(pid).name() or None
    except psutil.Error:
        return None


@dataclass(frozen=True)
class ChildProcess:
    """A process that is the leader of its own session."""

    pid: int
    started: str
    role: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the process of a record; None for an invalid record."""
        try:
            child = cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return None
        named = isinstance(child.started, str) and isinstance(child.role, str)
        return child if named and is_process_id(child.pid) else None

    def is_alive(self) -> bool:
        """Return whether exactly this process still runs."""
        return start_time(self.pid) == self.started

    def leads_session(self) -> bool:
        """Return whether the process leads its group; also true if only the group remains."""
        try:
            return os.getsid(self.pid) == self.pid
        except ProcessLookupError:
            return True

    def end(
        self, grace_seconds: float, terminate: Callable[[ChildProcess], bool] = lambda _: False
    ) -> None:
        """Send SIGTERM to the group, SIGKILL after the grace period, and wait for the end.

        ``terminate`` may ask it to end in another way than by SIGTERM, and is true if it did.
        """
        if not terminate(self):
            self._signal(signal.SIGTERM)
        wait_until(lambda: not self.is_alive(), grace_seconds)
        self._signal(signal.SIGKILL)
        wait_until(lambda: not self.is_alive())

    def _signal(self, number: signal.Signals) -> None:
        # The group can outlive its leader (a shell that put work in the background), and while it
        # does, the kernel does not give its id away.
        if not (is_process_id(self.pid) and self.leads_session()):
            return
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def succeeds(command: list[str], seconds: float) -> bool:
    """Return whether a command ends with exit code 0 within ``seconds``; its output is dropped."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def register_child(folder: Path, pid: int, role: str) -> ChildProcess:
    """Record a child process just after its start."""
    child = ChildProcess(pid, start_time(pid) or "gone", role)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{pid}.json"
    partial = target.with_suffix(".tmp")
    partial.write_text(json.dumps(vars(child)))
    partial.replace(target)
    return child


def unregister_child(folder: Path, child: ChildProcess) -> None:
    """Delete the record of an ended child process."""
    (folder / f"{child.pid}.json").unlink(missing_ok=True)


def end_below(folder: Path) -> None:
    """Kill every process whose ``HOME`` is this folder or lies below it.

    Programs of jobs have such a home. torchrun gives each process it starts a session of its own,
    so that ending a group leaves them behind.
    """
    for process in _at_home_below(folder):
        _kill(process)


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a process, for ``kill_all``."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def kill_all(family: Iterable[psutil.Process]) -> None:
    """Kill the processes that still run; a reused process id is not affected."""
    for process in family:
        _kill(process)


def _at_home_below(folder: Path) -> Iterator[psutil.Process]:
    import psutil

    for process in psutil.process_iter():
        try:
            home = process.environ().get("HOME", "")
        except (psutil.Error, OSError):  # of another user, or gone
            continue
        if home and Path(home).is_relative_to(folder) and process.pid != os.getpid():
            yield process


def _kill(process: psutil.Process) -> None:
    import psutil

    with suppress(psutil.Error):
        process.kill()
        process.wait(_KILL_SECONDS)


def live_children(folder: Path) -> list[ChildProcess]:
    """Return the recorded children that run. Deletes records of ended processes."""
    alive: list[ChildProcess] = []
    for record in sorted(folder.glob("*.json")):
        child = ChildProcess.parse(record.read_text())
        if child and child.is_alive() and child.leads_session():
            alive.append(child)
        else:
            record.unlink(missing_ok=True)
    return alive


def end_orphaned_children(folder: Path, grace_seconds: float = 3.0) -> list[ChildProcess]:
    """End the recorded children of a killed server, and return those that were running."""
    orphaned = live_children(folder)
    for child in orphaned:
        child.end(grace_seconds)
        unregister_child(folder, child)
    return orphaned
