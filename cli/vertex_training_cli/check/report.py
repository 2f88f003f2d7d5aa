"""The findings in a file, for every output format."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from vertex_training.errors import Level, Location, Problem
from vertex_training.secret_rules.redaction import redacted

#: From the most to the least important one.
LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
#: A value as it stands in a line: quoted text, or plain up to what ends it in YAML.
TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"' r"|'(?:[^']|'')*'" r"|\$\{[^}]*\}[^\s,\]}]*" r"|[^\s,\[\]{}#:][^,\[\]{}#]*"
)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One problem. Lines and columns count from 1, columns in characters; the end is exclusive."""

    file: str
    line: int
    column: int
    end_column: int
    problem: Problem

    @property
    def level(self) -> Level:
        """``error``, ``warning`` or ``note``."""
        return self.problem.level

    @property
    def rule(self) -> str:
        """Id of the broken rule."""
        return self.problem.rule

    @property
    def statement(self) -> str:
        """What is wrong with what, with the location if it is in another file."""
        elsewhere = self.problem.location
        return (
            f"{elsewhere}: {self.problem.statement}" if elsewhere.file else self.problem.statement
        )

    @property
    def message(self) -> str:
        """The text, without the place in the report's own file."""
        return str(self.problem)


@dataclass(frozen=True, slots=True)
class FileReport:
    """Everything found in one file, by place. ``source`` are its lines."""

    file: str
    findings: tuple[LintFinding, ...] = ()
    source: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def from_problems(cls, file: str, source: str, problems: Iterable[Problem]) -> FileReport:
        """A report of problems as the checker found them; the same one twice counts once."""
        lines = tuple(re.split(r"\r\n|[\n\r\x85\u2028\u2029]", source))  # YAML's line breaks
        found = [_finding(problem, file, lines) for problem in problems]
        unique = dict.fromkeys(found)
        return cls(file, tuple(sorted(unique, key=_order)), lines)

    def count(self, level: Level) -> int:
        """How many findings are of this level."""
        return sum(finding.level == level for finding in self.findings)

    def without_notes(self) -> FileReport:
        """The report with errors and warnings only."""
        told = tuple(finding for finding in self.findings if finding.level != "note")
        return dataclasses.replace(self, findings=told)

    def merged(self, other: FileReport) -> FileReport:
        """Findings of both, which are about the same file."""
        unique = dict.fromkeys(self.findings + other.findings)
        return dataclasses.replace(self, findings=tuple(sorted(unique, key=_order)))


def _order(finding: LintFinding) -> tuple[int, int, int, str]:
    return finding.line, finding.column, LEVELS.index(finding.level), finding.rule


def _finding(problem: Problem, file: str, lines: tuple[str, ...]) -> LintFinding:
    problem = dataclasses.replace(
        problem, value=redacted(problem.value), hint=redacted(problem.hint)
    )
    location, own = problem.location, problem
    if location.file == file:
        own = problem.at(Location())
    else:  # of a package, or of a folder: reported at the top
        location = Location()
    line, column = max(location.line, 1), max(location.column, 1)
    text = lines[line - 1] if line <= len(lines) else ""
    return LintFinding(file, line, column, end_of_value(text, column), own)


def end_of_value(line: str, column: int) -> int:
    """Column after the key or value that begins at ``column``; at least one character further.

    >>> end_of_value("replicaCount: 0  # none", 15)
    16
    >>> end_of_value("replicaCount: 0", 1)
    13
    """
    rest = line[column - 1 :]
    match = TOKEN.match(rest)
    if match is None:
        return column + 1
    token = match[0]
    if rest[0] not in "\"'":
        token = re.split(r":(?=\s|\Z)", token, maxsplit=1)[0].rstrip()
    return column + max(len(token), 1)
