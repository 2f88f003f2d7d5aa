"""Problems as values and as exceptions, with texts that tell the reader what to do.

A mistake in a file is a :class:`Problem`: a value with its place, formatted once, when it is
printed. Exceptions that reach a person have one tree::

    TrainingError
    ├── ConfigError                   a stack file or a job file cannot be used; has all problems
    ├── UnknownStackError             the project has no such stack
    ├── UnknownReferenceError         ``${kind.name}`` stands for nothing in this stack
    ├── OperatorError                 an operation on a job was refused, or is not certain
    │   ├── NotSubmittedError         it is certain that no job was created
    │   │   └── PermissionDeniedError because a permission is missing
    │   ├── InDoubtError              the answer was lost: a job may exist
    │   ├── JobRefusedError           a job exists, and must not run again without being asked to
    │   │   └── RungPassedError       another rung of its ladder has the turn
    │   └── WaitError                 the job is not where the stack waits for it to be
    │       └── WaitDeadlineError     and may still get there
    ├── CheckUnavailableError         nothing could be checked
    ├── PreviewError                  ``pulumi preview`` printed nothing that can be parsed
    │   ├── EventParseError           a line is no engine event
    │   └── PreviewParseError         a text is no preview
    ├── ApprovalParseError            a text is no record of an approval
    └── CommandError                  a command of ``vt`` cannot go on; has a message and a hint
        ├── ForbiddenReadError        the account may not read what a comparison asks for
        ├── ArtifactError             what a run uploaded is not what a preview uploads
        ├── UnknownNameError          the stack or the catalogue has no such name
        ├── ImageBuildError           an image was not built; has the last lines of the log
        └── RegistryError             a registry of images refused, or cannot be reached

``PreconditionFailedError`` never reaches a person: a write lost a race, and is begun again.
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
#: A note is advice that is worth a line only to who asks for it (``vt check --all``).
Level = Literal["error", "warning", "note"]
#: A value longer than this is cut in messages; nobody needs a whole script in an error line.
MAX_SHOWN: Final = 80
#: No known word is longer; comparing a longer one would only cost time.
MAX_WORD: Final = 64


def dotted(path: Path) -> str:
    """A path as people write it.

    >>> dotted(("workerPoolSpecs", 0, "replicaCount"))
    'workerPoolSpecs[0].replicaCount'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place that an editor can open. Lines and columns count from 1; 0 means: not known."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """``jobs/x.yaml:12:7``, with as much of it as is known."""
        numbers = [str(number) for number in (self.line, self.column) if number]
        return ":".join([self.file, *numbers])


@dataclass(frozen=True, slots=True)
class Mend:
    """A certain fix of a problem, as an edit of the entry at its path."""

    action: Literal["rename", "value", "remove", "move", "split", "script", "env"]
    to: str | int | bool | tuple[tuple[str, str], ...] = ""
    """The new key or value; of ``script`` the number of words in front of it; of ``env`` the name
    and the value of each variable."""
    at: Path = ()
    """The entry, if it is not the one at the problem's path."""
    target: Path = ()
    """The mapping that an entry moves to."""
    guessed: bool = False
    """True if the fix is right only if it causes no other problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in something a person wrote, or a warning or note about it."""

    what: str
    value: str = ""
    """The offending value; empty if showing it adds nothing, or if it could be a secret."""
    hint: str = ""
    """Advice: what to write instead."""
    path: Path = ()
    """Path in the document; empty if the text has it."""
    location: Location = Location()
    rule: str = ""
    """Id of the broken rule, as ``vt check --rules`` lists it; empty outside of job files."""
    level: Level = "error"
    mend: Mend | None = dataclasses.field(default=None, compare=False, repr=False)
    """Edit for ``vt check --fix``, if the fix is certain. Its value may be a secret."""

    def at(self, location: Location) -> Problem:
        """The same problem at ``location``."""
        return dataclasses.replace(self, location=location)

    @property
    def statement(self) -> str:
        """Return subject and mistake: ``buckets.data: what is wrong``."""
        return f"{dotted(self.path)}: {self.what}" if self.path else self.what

    @property
    def message(self) -> str:
        """The text without the location."""
        value = f" (got {abbreviate(self.value)})" if self.value else ""
        hint = f" Hint: {self.hint}" if self.hint else ""
        return f"{self.statement}{value}.{hint}"

    def __str__(self) -> str:
        """``Pulumi.dev.yaml:12:7: buckets.data: what is wrong (got X). Hint: …``."""
        return f"{self.location}: {self.message}" if self.location.file else self.message


class TrainingError(Exception):
    """Base of all errors that are meant for a person. The text includes what to do."""


class ConfigError(TrainingError):
    """Input of a person cannot be used. Has every problem, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def report(self) -> str:
        """All problems, one a line, under a line that counts them."""
        count = len(self.problems)
        head = "1 mistake" if count == 1 else f"{count} mistakes"
        return f"{head}; nothing was changed.\n{self}"


class UnknownStackError(TrainingError):
    """The project has no file of that stack. The message lists the stacks it has."""


class UnknownReferenceError(TrainingError):
    """A reference stands for nothing in this stack. ``hint`` lists what there is."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(name)
        self.name = name
        self.hint = hint


class PreconditionFailedError(Exception):
    """The precondition of a write did not hold: another process wrote in between."""


class OperatorError(TrainingError):
    """An operation on a job was refused or is in doubt. The text includes what to do."""


class NotSubmittedError(OperatorError):
    """The service refused: it is certain that no job was created."""


class PermissionDeniedError(NotSubmittedError):
    """A permission is missing. One granted a moment ago may take a minute to have effect."""


class InDoubtError(OperatorError):
    """The answer was lost: a job may or may not have been created."""


class JobRefusedError(OperatorError):
    """A job exists for this request and must not be run again without being asked to."""


class RungPassedError(JobRefusedError):
    """Another rung of the job's ladder has the turn, so this one is not sent: look again."""


class WaitError(OperatorError):
    """The job is not where the stack waits for it to be: it ended otherwise, or time is over."""


class WaitDeadlineError(WaitError):
    """The deadline passed; the job may still get there."""


class CommandError(TrainingError):
    """A command cannot go on: printed as one plain line, never as a traceback.

    ``message`` has what, where and the value; ``hint`` has what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)


class ForbiddenReadError(CommandError):
    """The account may not read what a comparison asks for."""


class UnknownNameError(CommandError):
    """The stack, or the catalogue, does not have what a command line names."""


class ArtifactError(CommandError):
    """A run's artifact is missing, or is not what the workflow of a preview uploads."""


class ImageBuildError(CommandError):
    """An image was not built or not pushed; the stack file is as it was.

    ``last_lines`` are the last lines of the build's log, oldest first, at most 20.
    """

    def __init__(self, message: str, last_lines: Iterable[str] = (), hint: str = "") -> None:
        self.last_lines = tuple(last_lines)[-20:]
        super().__init__(message, hint)


class RegistryError(CommandError):
    """A registry of images refused, or cannot be reached. ``status`` is that of HTTP, 0 if none."""

    def __init__(self, message: str, hint: str = "", status: int = 0) -> None:
        self.status = status
        super().__init__(message, hint)


class CheckUnavailableError(TrainingError):
    """Nothing could be checked. The message is one line with the reason."""


class PreviewError(TrainingError):
    """``pulumi preview`` printed nothing that can be parsed. The message is its output."""


class EventParseError(PreviewError):
    """A line is no engine event. The message quotes its beginning."""


class PreviewParseError(PreviewError):
    """A text is not what ``pulumi preview --json`` prints."""


class ApprovalParseError(TrainingError):
    """A text is no record of an approval. The message lists what it lacks."""


def abbreviate(text: str) -> str:
    """``text`` on one line, cut to what an error message can carry."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


#: A name with a number in it: ``g2-standard-12``, ``a3-highgpu-8g``.
_NUMBER: Final = re.compile(r"(.*?\D)(\d{1,9})(\D*)")


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that ``word`` was most likely meant to be, or None.

    ``likeness`` is from 0 to 1, which is the same word.

    >>> nearest("buckts", ["buckets", "images"])
    'buckets'
    """
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
    """A hint that names the nearest known word, or else all of them; empty if none is known.

    >>> did_you_mean("buckts", ["buckets", "images"])
    "did you mean 'buckets'?"
    """
    choices = sorted(known)
    if near := nearest(word, choices):
        return f"did you mean '{near}'?"
    return f"known here: {', '.join(choices)}" if choices else ""
