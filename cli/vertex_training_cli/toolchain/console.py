"""Progress on the terminal, and subprocesses with limits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PLAIN_HEARTBEAT_SECONDS: Final = 15.0
TERMINAL_HEARTBEAT_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 3.0


class SetupError(Exception):
    """A step failed. The text is a complete message for the user.

    Attributes:
        what: the step, in one line.
        tried: one line for each attempt, with the reason of its failure.
        hint: what the user can do.
    """

    def __init__(self, what: str, tried: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.tried = list(tried)
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"setup: {self.what}", *(f"  tried: {line}" for line in self.tried)]
        if self.hint:
            lines.append(f"  Hint: {self.hint}")
        return "\n".join(lines)


class SubprocessError(Exception):
    """A program failed, exceeded its time limit or could not be started; the text is one line."""


@dataclass
class ProgressLine:
    """One line of progress; ``note`` is its result."""

    note: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


@contextlib.contextmanager
def step(title: str) -> Iterator[ProgressLine]:
    """Time the block and print its title, note and duration when it ends without an error."""
    current = ProgressLine()
    yield current
    print(f"  {title:<20} {current.note} ({current.seconds:.1f} s)", flush=True)


class Heartbeat:
    """Progress of a silent program: a counter on a terminal, else a line every 15 s."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.terminal = sys.stdout.isatty()
        self.period = TERMINAL_HEARTBEAT_SECONDS if self.terminal else PLAIN_HEARTBEAT_SECONDS

    def beat(self, seconds: float) -> None:
        if self.terminal:
            print(f"\r  {self.what} ... {seconds:.0f} s", end="", flush=True)
        else:
            print(f"  {self.what} ... {seconds:.0f} s", flush=True)

    def clear(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def run(
    command: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    limit: float = 600.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a program with its output in ``log``, and show a heartbeat titled ``what``.

    The program and its process group have ended when this function returns or raises.

    Raises:
        SubprocessError: not startable, longer than ``limit`` seconds, or a non-zero exit code.
    """
    parts = [str(part) for part in command]
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                parts,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env) if env is not None else None,
                process_group=0,
            )
        except OSError as error:
            raise SubprocessError(f"{parts[0]}: {error.strerror}") from error
        try:
            code = _wait_for(process, Heartbeat(what), limit)
        finally:
            end_group(process)
    if code != 0:
        raise SubprocessError(f"exit code {code}: {last_lines(log)}")


def _wait_for(process: subprocess.Popen[bytes], heartbeat: Heartbeat, limit: float) -> int:
    started = time.monotonic()
    try:
        while True:
            try:
                return process.wait(heartbeat.period)
            except subprocess.TimeoutExpired:
                elapsed = time.monotonic() - started
                heartbeat.beat(elapsed)
                if elapsed > limit:
                    raise SubprocessError(f"no end after {limit:.0f} s, given up") from None
    finally:
        heartbeat.clear()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process and its process group; kill them after a grace period."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def last_lines(log: Path, count: int = 3) -> str:
    """The last ``count`` lines of a log, where programs print the reason of a failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return " | ".join([line for line in lines if line][-count:]) or "(it printed nothing)"


def read_output(command: Sequence[str | Path], *, limit: float = 20.0) -> str:
    """Run a short command and return its standard output.

    Raises:
        SubprocessError: not startable, too slow, or a non-zero exit code.
    """
    parts = [str(part) for part in command]
    environment = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        answer = subprocess.run(
            parts,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise SubprocessError(f"{parts[0]}: no answer in {limit:.0f} s") from None
    except OSError as error:
        raise SubprocessError(f"{parts[0]}: {error.strerror}") from error
    if answer.returncode != 0:
        lines = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
        raise SubprocessError(
            f"{parts[0]}: {lines[-1] if lines else f'exit code {answer.returncode}'}"
        )
    return answer.stdout.strip()
