"""Progress on the terminal, and subprocesses with limits."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


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


def step(title: str, install: Callable[[], Result]) -> Result:
    """Run ``install``, print its title, its result and its duration, and return the result."""
    started = time.monotonic()
    result = install()
    print(f"  {title:<20} {result} ({time.monotonic() - started:.1f} s)", flush=True)
    return result


def run(
    command: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    limit: float = 600.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Print ``what`` and run a program with its output in ``log``.

    The program and its process group have ended when this function returns or raises.

    Raises:
        SubprocessError: not startable, longer than ``limit`` seconds, or a non-zero exit code.
    """
    parts = [str(part) for part in command]
    print(f"  {what} ...", flush=True)
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
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise SubprocessError(f"no end after {limit:.0f} s, given up") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        raise SubprocessError(f"exit code {code}: {last_lines(log)}")


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
