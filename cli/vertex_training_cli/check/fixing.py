"""``vt check --fix``: applies fixes that are certain, and shows the diff.

Each fix is tried on a copy and kept if its problem disappears. A guess, such as the GPU for a name
without a memory size, is kept only if it causes no other problem.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.request import job_file
from vertex_training.errors import CheckUnavailableError, Problem
from vertex_training.located_yaml.editing import mended
from vertex_training_cli.check import checking, placeholders
from vertex_training_cli.engine.paths import from_here, link_out

if TYPE_CHECKING:  # with a stack comes pydantic
    from vertex_training.stack import Stack

#: Maximum of fixes in one file. Each fix is verified by a new check of the file.
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
        """Yield the lines of a unified diff; yields no lines for an unchanged file."""
        before, after = (
            part.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
            for part in (self.before, self.after)
        )
        yield from difflib.unified_diff(before, after, self.file, self.file)

    def write(self) -> None:
        """Replace the file atomically, with the same permissions. A link remains a link.

        Raises:
            CheckUnavailableError: the file cannot be written, was changed meanwhile, or is behind
                a link out of the checkout.
        """
        path = Path(os.path.realpath(os.path.abspath(self.file)))
        if link := link_out(Path(os.path.abspath(self.file))):
            raise CheckUnavailableError(
                f"{self.file}: {from_here(link)} is a link to a place outside the checkout"
            )
        try:
            if path.read_bytes() != self.before:
                raise CheckUnavailableError(
                    f"{self.file} was changed by another program; run vt check again"
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
        if _is_better(problem, problems, after):
            current, problems, count = candidate, after, count + 1
            refused.clear()
        else:
            refused.add(_identity(problem))
    return FixedFile(file, data, mark + current.encode(), count)


def _next(text: str, problems: Sequence[Problem], refused: set[str]) -> tuple[Problem, str] | None:
    """Return the first problem with an applicable fix, and the fixed text."""
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


def _is_better(mended_one: Problem, before: Sequence[Problem], after: Sequence[Problem]) -> bool:
    """Return whether a fix removed its problem; a guessed fix must also leave fewer errors."""
    if any(_identity(finding) == _identity(mended_one) for finding in after):
        return False
    guessed = mended_one.mend is not None and mended_one.mend.guessed
    return not guessed or _errors(after) < _errors(before)


def _errors(problems: Sequence[Problem]) -> int:
    return sum(problem.level == "error" for problem in problems)


def fix_all(arguments: Sequence[str], stack_name: str) -> Iterator[FixedFile]:
    """Yield files with safe fixes: the named files, or all files of the stack or project.

    With a stack, its references are resolved. A file without a job in the stack is checked like a
    job file of the stack.

    Raises:
        CheckUnavailableError: a file or the stack does not exist, or there is no file to check.
    """
    root, loaded = checking.project_of(stack_name), None
    if stack_name and root:
        reports = checking.stack_or_reports(root, stack_name)
        loaded = None if isinstance(reports, list) else reports
    for file in checking.files_to_check(arguments, root, loaded):
        yield fix(file, checking.read(file), judge_of(file, loaded))


def judge_of(file: str, loaded: Stack | None = None) -> Judge:
    """Return the function that returns this file's problems, with or without a stack."""
    job = checking.job(file)

    def judge(data: bytes) -> Sequence[Problem]:
        if loaded is not None:
            return loaded.check_other(data, file, job).problems
        table = placeholders.table(data)
        return job_file.check_job_file(data, file, placeholders.submission(job), table).problems

    return judge
