"""An exception in a team's code, as one problem with the file and line of that code."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pulumi

from vertex_training.errors import Location, Problem, abbreviate

#: Where the standard library and installed packages are.
_INSTALLED: Final = tuple(Path(path).resolve() for path in set(sysconfig.get_paths().values()))


def problem_of(error: BaseException, doing: str, root: Path) -> Problem:
    """``error`` at the innermost line below ``root``; the lines that led to it are the hint.

    ``doing`` says what failed: ``import`` or ``declare(environment)``.
    """
    where = [*_own_frames(error, root)]
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg
        where.append(Location(_shown(Path(error.filename), root), error.lineno or 0))
    else:
        text = abbreviate(str(error))
    what = f"{doing} raised {type(error).__name__}" + (f": {text}" if text else "")
    if isinstance(error, pulumi.RunError):  # written for the user, like mistakes in arguments
        what = f"{doing}: {error}".rstrip(".")
    if isinstance(error, SystemExit):
        what = f"{doing} ended the program: sys.exit({error.code!r})"
    return Problem(what, "", _hint(error, where), location=where[-1] if where else Location())


def _hint(error: BaseException, where: list[Location]) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install what has the module {error.name}, and add it to requirements.txt"
    if isinstance(error, SystemExit):
        return "raise an exception that says what is wrong"
    if isinstance(error, SyntaxError):
        return ""
    callers = list(dict.fromkeys(str(each) for each in where[:-1]))
    return f"it was called at {', '.join(callers)}" if callers else ""


def _own_frames(error: BaseException, root: Path) -> Iterator[Location]:
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if _is_own(path, root):
            yield Location(_shown(path, root), frame.lineno or 0)


def _is_own(path: Path, root: Path) -> bool:
    """Whether a file is the team's: below ``root``, and neither installed nor this package."""
    path = path.resolve()
    ours = Path(__file__).resolve().parents[1]
    apart = (ours, root.resolve() / ".venv", *(p for p in _INSTALLED if p != root.resolve()))
    return path.is_relative_to(root.resolve()) and not any(map(path.is_relative_to, apart))


def _shown(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
