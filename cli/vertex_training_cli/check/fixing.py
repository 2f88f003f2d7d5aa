"""Apply certain fixes to files for ``vt check --fix``, and show the diff.

Each fix is tried on a copy and kept if its problem disappears. A guessed fix, such as a GPU without
a memory size, must also cause no new error.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vertex_training.errors import CheckUnavailableError, Problem
from vertex_training.located_yaml.editing import mended
from vertex_training_cli.check import checking
from vertex_training_cli.engine.paths import from_here, link_out

if TYPE_CHECKING:  # Without a stack, pydantic is not imported.
    from vertex_training.stack import Stack

#: Maximum number of fixes in one file. Each fix is verified by a new check of the file.
MAX_MENDS: Final = 100
#: Byte order mark, which some editors add.
BOM: Final = b"\xef\xbb\xbf"

#: Function that returns the problems of a file's content.
Judge = Callable[[bytes], Sequence[Problem]]


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file with its content before and after the fixes."""

    file: str
    before: bytes
    after: bytes
    count: int

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff; no lines for an unchanged file."""
        before, after = (
            part.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
            for part in (self.before, self.after)
        )
        yield from difflib.unified_diff(before, after, self.file, self.file)

    def write(self) -> None:
        """Replace the file atomically, with the same permissions. A symbolic link is kept."""
        path = Path(os.path.realpath(os.path.abspath(self.file)))
        if link := link_out(Path(os.path.abspath(self.file))):
            raise CheckUnavailableError(
                f"{self.file}: {from_here(link)} is a link to a file outside the checkout"
            )
        try:
            if path.read_bytes() != self.before:
                raise CheckUnavailableError(
                    f"another program changed {self.file}. Run `vt check` again"
                )
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
                try:
                    new.write(self.after)
                    new.flush()
                    Path(new.name).chmod(path.stat().st_mode & 0o7777)
                    Path(new.name).replace(path)
                except BaseException:
                    Path(new.name).unlink(missing_ok=True)
                    raise
        except OSError as failed:
            raise CheckUnavailableError(f"{self.file}: {failed.strerror or failed}") from None


def fix(file: str, data: bytes, judge: Judge) -> FixedFile:
    """Return the file with all safe fixes applied."""
    mark, text = (BOM, data[3:]) if data.startswith(BOM) else (b"", data)
    count, problems = 0, list(judge(data))
    try:
        current = text.decode()
    except UnicodeDecodeError:
        return FixedFile(file, data, data, 0)
    refused = set[str]()
    while count < MAX_MENDS:
        step = _next(current, problems, refused)
        if step is None:
            break
        problem, candidate = step
        after = list(judge(mark + candidate.encode()))
        identities = {_identity(finding) for finding in after}
        is_certain = problem.mend is None or not problem.mend.guessed
        fewer = is_certain or _errors(after) < _errors(problems)
        if fewer and _identity(problem) not in identities:
            current, problems, count = candidate, after, count + 1
            refused.clear()
        else:
            refused.add(_identity(problem))
    return FixedFile(file, data, mark + current.encode(), count)


def _next(text: str, problems: Sequence[Problem], refused: set[str]) -> tuple[Problem, str] | None:
    for problem in problems:
        if problem.mend is None or _identity(problem) in refused:
            continue
        candidate = mended(text, problem.mend.at or problem.path, problem.mend)
        if candidate is not None:
            return problem, candidate
        refused.add(_identity(problem))
    return None


def _identity(problem: Problem) -> str:
    return f"{problem.path} {problem.rule} {problem.mend}"


def _errors(problems: Sequence[Problem]) -> int:
    return sum(problem.level == "error" for problem in problems)


def fix_all(arguments: Sequence[str], stack_name: str) -> Iterator[FixedFile]:
    """Yield files with safe fixes: the named files, or all files of the stack or project."""
    root, loaded = checking.project_of(stack_name), None
    if stack_name and root:
        reports = checking.stack_or_reports(root, stack_name)
        loaded = None if isinstance(reports, list) else reports
    for file in checking.files_to_check(arguments, root, loaded):
        yield fix(file, checking.read(file), judge_of(file, loaded))


def judge_of(file: str, loaded: Stack | None = None) -> Judge:
    """Return the function that returns this file's problems, with or without a stack."""
    job = checking.job(file)
    check = checking.check_content if loaded is None else loaded.check_other
    return lambda data: check(data, file, job).problems
