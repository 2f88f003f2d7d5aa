"""Mistakes in files as values (:class:`Problem`), and the exceptions of all packages.

A problem becomes text only when it is printed. Exceptions for users derive from ``TrainingError``.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

#: Keys and indices from the top of a document to a value.
Path = tuple[str | int, ...]
#: Severity of a problem. A note is advice that only ``vt check --all`` prints.
Level = Literal["error", "warning", "note"]
#: Maximum length of a value in messages.
MAX_SHOWN: Final = 80
#: Maximum length of a word in a search for similar words.
MAX_WORD: Final = 64
#: Maximum number of choices that a hint lists.
MAX_CHOICES: Final = 16


def dotted(path: Path) -> str:
    """Return a path as text, like ``workerPoolSpecs[0].replicaCount``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Position in a file. Lines and columns begin at 1; 0 means unknown."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Format the known parts of the position, like ``jobs/x.yaml:12:7``."""
        numbers = [str(number) for number in (self.line, self.column) if number]
        return ":".join([self.file, *numbers])


@dataclass(frozen=True, slots=True)
class Mend:
    """An automatic fix of a problem: an edit of the entry at the problem's path."""

    action: Literal["rename", "value", "remove", "move", "split", "script", "env"]
    to: str | int | bool | tuple[tuple[str, str], ...] = ""
    """New key or value; for ``script`` the number of preceding words, for ``env`` name and value of
    each variable."""
    at: Path = ()
    """Path of the entry, if it differs from the problem's path."""
    target: Path = ()
    """Path of the mapping that the entry moves to."""
    guessed: bool = False
    """True if the fix is uncertain: it is valid only if it causes no other problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake, warning or note about a file or argument."""

    what: str
    value: str = ""
    """Wrong value; empty if the text already shows the value, or if it may be a secret."""
    hint: str = ""
    """Advice: what to write instead."""
    path: Path = ()
    """Path in the document; empty if ``what`` already contains the path."""
    location: Location = Location()
    rule: str = ""
    """Id of the violated rule, as in ``vt check --rules``; empty outside of job files."""
    level: Level = "error"
    mend: Mend | None = dataclasses.field(default=None, compare=False, repr=False)
    """Edit for ``vt check --fix``, if the fix is certain. The edit may contain a secret."""

    def at(self, location: Location) -> Problem:
        return dataclasses.replace(self, location=location)

    @property
    def statement(self) -> str:
        """Return path and mistake, like ``buckets.data: the name is too long``."""
        return f"{dotted(self.path)}: {self.what}" if self.path else self.what

    @property
    def message(self) -> str:
        """Return the text of the problem without its location."""
        value = f" (got {abbreviate(self.value)})" if self.value else ""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{self.statement}{value}.{hint}"

    def __str__(self) -> str:
        """Format as ``Pulumi.dev.yaml:12:7: buckets.data: what is wrong (got X). Hint: …``."""
        return f"{self.location}: {self.message}" if self.location.file else self.message


class TrainingError(Exception):
    """Base of all errors that users see. The text includes a hint."""


class ConfigError(TrainingError):
    """A user's input is invalid. The error has all problems, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def report(self) -> str:
        """Format all problems, one per line, after a line with their number."""
        count = len(self.problems)
        head = "1 mistake" if count == 1 else f"{count} mistakes"
        return f"{head}; nothing was changed.\n{self}"


class UnknownStackError(TrainingError):
    """The project has no file for this stack. The message lists the existing stacks."""


class UnknownReferenceError(TrainingError):
    """The stack has no value for a reference. ``hint`` lists the known names."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(name)
        self.name = name
        self.hint = hint


class PreconditionFailedError(Exception):
    """The condition of a write was not fulfilled: another process wrote in the meantime."""


class OperatorError(TrainingError):
    """An operation on a job failed, or its result is unknown. The text includes a hint."""


class NotSubmittedError(OperatorError):
    """The service refused the request: no job was created."""


class PermissionDeniedError(NotSubmittedError):
    """A permission is missing. A new grant can take a minute to take effect."""


class InDoubtError(OperatorError):
    """The response was lost: the job may or may not exist."""


class JobRefusedError(OperatorError):
    """A job already exists for this request, which must not run again automatically."""


class RungPassedError(JobRefusedError):
    """Another rung of the ladder was submitted instead of this rung. Callers retry."""


class WaitError(OperatorError):
    """The job did not reach the state in its ``wait``: the job ended, or the deadline passed."""


class WaitDeadlineError(WaitError):
    """The deadline passed before the job reached the state in its ``wait``."""


class CommandError(TrainingError):
    """A command failed. ``message`` has the problem with its place, ``hint`` has the fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)


class ForbiddenReadError(CommandError):
    """The account lacks the right to read the data for a comparison."""


class UnknownNameError(CommandError):
    """The stack or the catalogue has no entry with the name on the command line."""


class ArtifactError(CommandError):
    """The artifact of a workflow is missing, or is not from the preview workflow."""


class ImageBuildError(CommandError):
    """An image build or push failed. ``last_lines``: the end of the log, oldest line first."""

    def __init__(self, message: str, last_lines: Iterable[str] = (), hint: str = "") -> None:
        self.last_lines = tuple(last_lines)[-20:]
        super().__init__(message, hint)


class RegistryError(CommandError):
    """A container registry refused a call (HTTP ``status``) or is unreachable (``status`` 0)."""

    def __init__(self, message: str, hint: str = "", status: int = 0) -> None:
        self.status = status
        super().__init__(message, hint)


class CheckUnavailableError(TrainingError):
    """A check could not run. The message is the reason, in one line."""


class PreviewError(TrainingError):
    """The output of ``pulumi preview`` cannot be parsed. The message quotes this output."""


class EventParseError(PreviewError):
    """A line is not an engine event. The message quotes the beginning of the line."""


class PreviewParseError(PreviewError):
    """A text is not the output of ``pulumi preview --json``."""


class ApprovalParseError(TrainingError):
    """A text is not an approval record. The message lists the missing parts."""


def abbreviate(text: str) -> str:
    """Shorten ``text`` to one line of at most ``MAX_SHOWN`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 job``, ``2 policies`` or ``no keys``."""
    plural = re.sub(r"(?<![aeiou])y$", "ie", noun) + "s"
    return f"{number or 'no'} {noun if number == 1 else plural}"


#: A name that contains a number, like ``g2-standard-12`` or ``a3-highgpu-8g``.
_NUMBER: Final = re.compile(r"(.*?\D)(\d{1,9})(\D*)")


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the most similar known word; None if no similarity reaches ``likeness`` (0 to 1)."""
    if len(word) > MAX_WORD:
        return None
    folded = {choice.lower(): choice for choice in sorted(known)}
    if counted := _NUMBER.fullmatch(word.lower()):
        others = [other for name in folded if (other := _NUMBER.fullmatch(name))]
        same = [other for other in others if other.group(1, 3) == counted.group(1, 3)]
        if same:
            return folded[min(same, key=lambda other: abs(int(other[2]) - int(counted[2])))[0]]
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=likeness)
    near = near or [name for name in folded if len(word) > 2 and name.startswith(word.lower())]
    return folded[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known word, or with the first ``MAX_CHOICES`` words."""
    choices = sorted(known)
    if near := nearest(word, choices):
        return f"did you mean '{near}'?"
    more = f" and {len(choices) - MAX_CHOICES} more" if len(choices) > MAX_CHOICES else ""
    return f"known here: {', '.join(choices[:MAX_CHOICES])}{more}" if choices else ""
