"""Runs a program with a deadline, and passes its output on line by line."""

from __future__ import annotations

import codecs
import collections
import io
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from localgcp.system.processes import descendants

#: Maximum number of log lines in an error.
KEPT: Final = 20
#: Maximum length of a stored line.
MAX_LINE: Final = 2_000
#: Seconds between SIGTERM and SIGKILL.
GRACE: Final = 5.0
#: Seconds between two reads of the output.
_POLL: Final = 0.05
_BLOCK: Final = 1 << 16


class LastLines:
    """Passes lines on, and stores the last lines for error messages."""

    def __init__(self, write_log: Callable[[str], None]) -> None:
        self._write_log = write_log
        self._kept: collections.deque[str] = collections.deque(maxlen=KEPT)

    def write(self, line: str) -> None:
        """Add a line without its line end."""
        self._kept.append(line[:MAX_LINE])
        self._write_log(line[:MAX_LINE])

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the last lines, oldest first."""
        return tuple(self._kept)


class Deadline:
    """A point in time, ``seconds`` from its creation."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())


def run(command: Sequence[str], env: Mapping[str, str], log: LastLines, deadline: Deadline) -> int:
    """Run ``command`` until it ends, and return its exit code.

    Its output goes through a file: should this process be killed, a program that wrote into a pipe
    would be ended by the next line, with its mounts and containers left as they are.

    Raises:
        TimeoutError: the deadline passed; the program and its children were ended.
        OSError: it cannot be started.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the group
        )
        lines = _Lines(output.fileno(), log)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(min(_POLL, deadline.seconds_left))
                    lines.write_new(final=True)
                    return code
                lines.write_new()
                if not deadline.seconds_left:
                    raise TimeoutError
        finally:
            _end(process)


class _Lines:
    """Lines that a program writes into a file."""

    def __init__(self, file: int, log: LastLines) -> None:
        self._file, self._log = file, log
        self._read, self._open = 0, ""
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)

    def write_new(self, *, final: bool = False) -> None:
        """Pass on new lines; with ``final`` also an incomplete last line."""
        while new := os.pread(self._file, _BLOCK, self._read):
            self._read += len(new)
            *lines, self._open = (self._open + self._decoder.decode(new)).split("\n")
            for line in lines:
                self._log.write(line)
            self._open = self._open[:MAX_LINE]
        if final and (last := self._open + self._decoder.decode(b"", final=True)):
            self._log.write(last)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the remaining processes of the program's group, children first.

    buildah undoes its mounts and containers if an instruction ends, not if it is ended itself.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None and (started := descendants(process.pid)):
            for descendant in started:
                _signal(os.kill, descendant.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(os.killpg, process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        send(target, number)
