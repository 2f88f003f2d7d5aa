"""Progress on the terminal, and subprocesses with time limits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class SetupError(Exception):
    """A failed step. The text is a complete message for the user.

    Attributes:
        what: the step, in one line.
        tried: one line for each attempt, with the reason of its failure.
        hint: what the user can do.
    """

    def __init__(self, what: str, tried: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what, self.tried, self.hint = what, list(tried), hint

    def __str__(self) -> str:
        lines = [f"setup: {self.what}", *(f"  tried: {line}" for line in self.tried)]
        return "\n".join([*lines, f"  Hint: {self.hint}"] if self.hint else lines)


class SubprocessError(Exception):
    """A program that failed or is not available here. The text is the reason, in one line."""


def run(
    command: Sequence[str | Path],
    *,
    what: str = "",
    log: Path | None = None,
    limit: float = 600.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Print ``what``, run a program, and return its output, which is also written to ``log``.

    The program and its process group have ended when this function returns or raises.

    Raises:
        SubprocessError: not startable, longer than ``limit`` seconds, or a non-zero exit code.
    """
    parts = [str(part) for part in command]
    if what:
        print(f"  {what} ...", flush=True)
    with log.open("w+b") if log else tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                parts,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={"PULUMI_SKIP_UPDATE_CHECK": "true", **(os.environ if env is None else env)},
                process_group=0,
            )
        except OSError as error:
            raise SubprocessError(f"{parts[0]}: {error.strerror}") from error
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise SubprocessError(f"stopped after {limit:.0f} s without ending") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        printed = output.read().decode(errors="replace").strip()
    if code != 0:
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        reason = " | ".join(lines[-3:]) or "(no output)"
        raise SubprocessError(f"exit code {code}: {reason}")
    return printed


def read_version(program: Path, *arguments: str) -> tuple[int, int, int]:
    """Run a program for its version, and return the version.

    Raises:
        SubprocessError: it does not run.
    """
    try:
        return parse_version(run([program, *arguments], limit=20.0))
    except SubprocessError as error:
        raise SubprocessError(f"{program}: {error}") from error


def parse_version(text: str) -> tuple[int, int, int]:
    """Return the first x.y.z in a text, or (0, 0, 0) if there is none."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)
