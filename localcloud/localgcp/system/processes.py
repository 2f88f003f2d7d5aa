"""Child processes with records for the next server, identified by process id and start time.

Commands of git ignore the variables and settings of the user.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

if TYPE_CHECKING:
    import psutil

T = TypeVar("T")
_POLL_SECONDS: Final = 0.02


def is_process_id(value: object) -> bool:
    """Return whether a value is the id of one process; 0 and -1 mean several processes."""
    return type(value) is int and 1 < value <= 1 << 22  # the maximum on Linux


def wait_until(holds: Callable[[], object], seconds: float = math.inf) -> bool:
    """Wait at most ``seconds`` until ``holds`` returns true; return whether it returned true."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return bool(answer)


def _inspect(pid: int, read: Callable[[psutil.Process], T]) -> T | None:
    import psutil  # importing it takes 30 ms, and most commands do not need it

    try:
        return read(psutil.Process(pid))
    except psutil.Error:
        return None


def start_time(pid: int) -> str | None:
    """Return a process's start time, or None for an ended process or a zombie."""
    import psutil

    def read(process: psutil.Process) -> str | None:
        created = process.create_time()
        # On Linux, both times change with the system clock, but their difference is constant.
        time_ = f"{created - psutil.boot_time() if psutil.LINUX else created:.2f}"
        return None if process.status() == psutil.STATUS_ZOMBIE else time_

    return _inspect(pid, read)


def runs(pid: int, *words: str) -> bool:
    """Return whether the command line of a process contains all these words."""
    return set(words) <= set(_inspect(pid, lambda process: process.cmdline()) or ())


def program(pid: int) -> str | None:
    """Return the name of a process's program, or None for a missing process."""
    if start_time(pid) is None:
        return None
    return _inspect(pid, lambda process: process.name()) or None


@dataclass(frozen=True)
class ChildProcess:
    """A process that leads its own session."""

    pid: int
    started: str
    role: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the process of a record, or None for an invalid record."""
        try:
            child = cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return None
        named = isinstance(child.started, str) and isinstance(child.role, str)
        return child if named and is_process_id(child.pid) else None

    def is_alive(self) -> bool:
        """Return whether this process still runs."""
        return start_time(self.pid) == self.started

    def leads_session(self) -> bool:
        """Return whether the process leads its group, or has ended."""
        try:
            return os.getsid(self.pid) == self.pid
        except ProcessLookupError:
            return True

    def end(
        self, grace_seconds: float, terminate: Callable[[ChildProcess], bool] = lambda _: False
    ) -> None:
        """Send SIGTERM to the group, SIGKILL after the grace period, and wait for the end.

        ``terminate`` returns whether it requested the end in another way than by SIGTERM.
        """
        if not terminate(self):
            self._signal(signal.SIGTERM)
        wait_until(lambda: not self.is_alive(), grace_seconds)
        self._signal(signal.SIGKILL)
        wait_until(lambda: not self.is_alive())

    def _signal(self, number: signal.Signals) -> None:
        # A group can outlive its leader; until the group ends, the kernel does not reuse the id.
        if not (is_process_id(self.pid) and self.leads_session()):
            return
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def run_quietly(
    command: list[str], seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run a command without input; None if it does not start or end within ``seconds``."""
    with suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    return None


def succeeds(command: list[str], seconds: float) -> bool:
    """Return whether a command ends with exit code 0 within ``seconds``."""
    done = run_quietly(command, seconds)
    return done is not None and done.returncode == 0


def register_child(folder: Path, pid: int, role: str) -> ChildProcess:
    """Write the record of a new child process."""
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
    """Kill every process whose ``HOME`` is this folder or a folder below."""
    import psutil

    for process in psutil.process_iter():
        try:
            home = process.environ().get("HOME", "")
        except (psutil.Error, OSError):  # a process of another user, or an ended process
            continue
        if home and Path(home).is_relative_to(folder) and process.pid != os.getpid():
            kill_all([process])


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a process, for ``kill_all``."""
    return _inspect(pid, lambda process: process.children(recursive=True)) or []


def kill_all(family: Iterable[psutil.Process]) -> None:
    """Kill the processes that still run; a new process with a reused id is not killed."""
    import psutil

    for process in family:
        with suppress(psutil.Error):
            process.kill()
            process.wait(5.0)


def live_children(folder: Path) -> list[ChildProcess]:
    """Return the recorded children that run, and delete the records of ended children."""
    alive: list[ChildProcess] = []
    for record in sorted(folder.glob("*.json")):
        child = ChildProcess.parse(record.read_text())
        if child and child.is_alive() and child.leads_session():
            alive.append(child)
        else:
            record.unlink(missing_ok=True)
    return alive


def end_orphaned_children(folder: Path, grace_seconds: float = 3.0) -> list[ChildProcess]:
    """End the recorded children of a killed server, and return the ended processes."""
    orphaned = live_children(folder)
    for child in orphaned:
        child.end(grace_seconds)
        unregister_child(folder, child)
    return orphaned


def make_thread(target: Callable[..., object], *args: object) -> threading.Thread:
    """Create a daemon thread that calls ``target`` after its start."""
    return threading.Thread(target=target, args=args, daemon=True)


#: Options that ignore `git replace`, reject bare repositories in a checkout and start no program.
GIT_OPTIONS: Final = (
    "--no-replace-objects",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)


def git_command(folder: Path, *arguments: str) -> list[str]:
    """Return a git command that runs in ``folder`` on the checkout around ``folder``."""
    top = checkout_around(folder.resolve())
    files = (f"--work-tree={top}",) if top else ()
    return ["git", "-C", str(folder), *files, *GIT_OPTIONS, *arguments]


def checkout_around(folder: Path) -> Path | None:
    """Return the nearest folder with a ``.git``: ``folder`` or one of its parents, or None."""
    folders = (folder, *folder.parents)
    return next((parent for parent in folders if (parent / ".git").exists()), None)


def git_variables() -> dict[str, str]:
    """Return the environment variables of this process without those of git."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
