"""Turns exceptions into lines on stderr and exit codes: 1 failed, 2 wrong usage, 130 interrupted.

The help of a command lists its other codes. A bug of the program keeps its traceback.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

from vertex_training.errors import (
    CheckUnavailableError,
    ConfigError,
    ImageBuildError,
    TrainingError,
    UnknownNameError,
    UnknownStackError,
)
from vertex_training_cli.console import extra_hint, print_line

FAILED: Final = 1
#: Exit code for invalid arguments and for missing input.
NOT_POSSIBLE: Final = 2
#: Errors that always mean that the input is missing.
NOTHING_THERE: Final = (CheckUnavailableError, UnknownNameError, UnknownStackError)
#: Commands whose exit code 1 means mistakes in files or a difference. Other failures of these
#: commands have exit code 2.
OWN_FAILURE: Final = (
    *("data snapshots diff", "diff", "import", "init", "jobs rerun", "new job", "review"),
    "upgrade",
)


@contextmanager
def exit_codes(verb: str, failed: int | None = None) -> Iterator[None]:
    """Print an error for the user, and end the command with its exit code, or with ``failed``."""
    try:
        yield
    except BrokenPipeError:
        raise  # `vt jobs list | head`: typer ends without a message.
    except Exception as error:
        text = _text(error, verb)
        if text is None:
            raise
        print_line(f"vt {verb}: {text}")
        if failed is None:
            failed = NOT_POSSIBLE if verb in OWN_FAILURE else FAILED
        code = NOT_POSSIBLE if isinstance(error, NOTHING_THERE) else failed
        raise typer.Exit(code) from None


def _text(error: Exception, verb: str) -> str | None:
    if isinstance(error, ConfigError):
        if any(problem.location.file for problem in error.problems):
            return error.report()
        return f"\nvt {verb}: ".join(map(str, error.problems))  # Problems of options have no file.
    if isinstance(error, ImageBuildError):
        return "\n".join([str(error), *(f"  | {line}" for line in error.last_lines)])
    if isinstance(error, OSError):  # For example a full disk, or a file of another user.
        name = f"cannot use {error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or error}."
    if isinstance(error, sqlite3.Error):
        return (
            f"cannot use the local cloud's database cloud.sqlite: {error}. Hint: `vt local "
            "down --clean` deletes the local cloud and its database"
        )
    if isinstance(error, ModuleNotFoundError):
        hint = extra_hint(error.name or "")
        return f"{error.name} is not installed. Hint: {hint}" if hint else None
    return str(error) if isinstance(error, _user_errors()) else None


def _user_errors() -> tuple[type[Exception], ...]:
    """Return exception classes with a message for users. Call this only after an error."""
    from vertex_training_cli.toolchain.layout import SetupError

    try:
        from localgcp.errors import LocalCloudError
    except ModuleNotFoundError:
        return TrainingError, SetupError
    return TrainingError, SetupError, LocalCloudError
