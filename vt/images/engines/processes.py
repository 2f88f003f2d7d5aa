"""Runs a program with a deadline; its output comes line by line; nothing of it stays behind."""

from __future__ import annotations

import collections
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

#: How many lines of a log an error carries.
KEPT: Final = 20
#: The longest line that is kept.
MAX_LINE: Final = 2_000
#: Seconds between SIGTERM and SIGKILL.
GRACE: Final = 5.0


class LastLines:
    """Passes lines on and keeps the last ones."""

    def __init__(self, write_log: Callable[[str], None]) -> None:
        self._write_log = write_log
        self._kept: collections.deque[str] = collections.deque(maxlen=KEPT)

    def write(self, line: str) -> None:
        """Take one line, without its end."""
        self._kept.append(line[:MAX_LINE])
        self._write_log(line[:MAX_LINE])

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._kept)


class Deadline:
    """A point in time, ``seconds`` from its creation."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._end - time.monotonic())


def run(command: Sequence[str], env: Mapping[str, str], log: LastLines, deadline: Deadline) -> int:
    """Run ``command`` to its end, and return its exit code.

    Raises:
        TimeoutError: the deadline passed; the program and its children were ended.
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the group
    )
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        while (line := lines.get(timeout=deadline.seconds_left)) is not None:
            log.write(line.rstrip("\r\n"))
        return process.wait(deadline.seconds_left)
    except (queue.Empty, subprocess.TimeoutExpired):
        raise TimeoutError from None
    finally:
        _end(process)


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    with suppress(ValueError, OSError):  # closed at the end of a cancelled run
        for line in stream:
            lines.put(line)
    lines.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """End what is left of the program's group."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal(process, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
