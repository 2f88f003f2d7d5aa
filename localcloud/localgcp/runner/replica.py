"""Runs one process of a job in a process group, watches it, and ends the group."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from localgcp.access import callers
from localgcp.errors import CommandNotFoundError
from localgcp.home import PRIVATE_UMASK
from localgcp.system import processes
from localgcp.vertex.job_logs import JobLog

#: Seconds between SIGTERM and SIGKILL of a process; a cancelled job must end within 10 s.
GRACE_SECONDS: Final = 8.0

#: Seconds between two checks of a process if the system does not report its end.
_POLL_SECONDS: Final = 0.05
#: Seconds between two checks of a process if the system reports its end. Checks use CPU time.
_LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True)
class Launch:
    """One process to start."""

    argv: list[str]
    env: Mapping[str, str]
    umask: int = PRIVATE_UMASK
    terminate: Callable[[processes.ChildProcess], bool] = lambda _child: False
    """Sends SIGTERM to the program; returns False to send SIGTERM to its whole group instead."""
    descriptors: tuple[int, ...] = ()
    """Locks on GPUs that the process inherits."""


class Ending(Enum):
    """Reasons for the end of a process."""

    EXITED = "exited"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Outcome:
    ending: Ending
    code: int
    """Exit code as a container reports it: 128 + N for signal N."""


def run(
    launch: Launch,
    *,
    cwd: Path,
    log: JobLog,
    notes: Path,
    cancelled: threading.Event,
    timeout_seconds: float | None = None,
    killed: Callable[[float], bool] = lambda _ran_seconds: False,
    account: str = "",
) -> Outcome:
    """Run a process until it ends, is cancelled or exceeds the time limit.

    ``killed`` is called repeatedly with the elapsed seconds; True kills the process. Remaining
    processes of its group are ended. Raises CommandNotFoundError.
    """
    process = _start(launch, cwd, log)
    child = processes.register_child(notes, process.pid, "job")
    try:
        end = partial(child.end, GRACE_SECONDS, launch.terminate)
        with callers.job_process(process.pid, account):
            ending = _watch(process, end, cancelled, timeout_seconds, killed)
    finally:
        child.end(0)
        if launch.env.get("HOME") == str(cwd):  # only processes of this job have this home folder
            processes.end_below(cwd)
        processes.unregister_child(notes, child)
    code = process.wait()
    return Outcome(ending, code if code >= 0 else 128 - code)


def _start(launch: Launch, cwd: Path, log: JobLog) -> subprocess.Popen[bytes]:
    with log.open() as output:
        try:
            return subprocess.Popen(
                launch.argv,
                env=dict(launch.env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=launch.umask,
                pass_fds=launch.descriptors,
            )
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            # A script with line ends of Windows names an interpreter that ends with \r.
            name = str(error.filename or launch.argv[0]).replace("\r", "\\r")
            raise CommandNotFoundError(f"{name}: {error.strerror}", code=code) from error


def _watch(
    process: subprocess.Popen[bytes],
    end: Callable[[], None],
    cancelled: threading.Event,
    timeout_seconds: float | None,
    killed: Callable[[float], bool],
) -> Ending:
    started = time.monotonic()
    with _pause(process, cancelled) as pause:
        while process.poll() is None:
            ran = time.monotonic() - started
            if cancelled.is_set() or (timeout_seconds is not None and ran > timeout_seconds):
                family = processes.descendants(process.pid)
                end()
                processes.kill_all(family)
                return Ending.CANCELLED if cancelled.is_set() else Ending.TIMED_OUT
            if killed(ran):
                family = processes.descendants(process.pid)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                processes.kill_all(family)
            pause()
    return Ending.EXITED


@contextmanager
def _pause(
    process: subprocess.Popen[bytes], cancelled: threading.Event
) -> Iterator[Callable[[], object]]:
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # the system has no pidfd, or refuses the call
        yield lambda: cancelled.wait(_POLL_SECONDS)
        return
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        yield lambda: ended.poll(_LOOK_SECONDS * 1000)
    finally:
        os.close(descriptor)


def signal_name(code: int) -> str:
    """Return a signal's name, like ``SIGKILL`` for 137; empty for other exit codes."""
    try:
        return signal.Signals(code - 128).name if code > 128 else ""
    except ValueError:
        return ""
