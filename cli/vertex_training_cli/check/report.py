"""Findings in a file, and their text.

A line for each finding, then the source line with a caret under the value. Other formats are in
``machine_reports``.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from vertex_training.errors import Level, Location, Problem
from vertex_training.located_yaml.document import MAX_PROBLEMS
from vertex_training.secret_rules.redaction import masked, redacted
from vertex_training_cli.console import plain

#: Levels in descending order.
LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
#: A value in a line: quoted text, a reference, or plain YAML text up to its end.
TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"' r"|'(?:[^']|'')*'" r"|\$\{[^}]*\}[^\s,\]}]*" r"|[^\s,\[\]{}#:][^,\[\]{}#]*"
)

#: Maximum number of characters shown of a source line.
WIDTH: Final = 100
#: Characters before and after the shown part of a line that are also searched for secrets. A line
#: may have megabytes.
NEAR: Final = 400
#: Escape sequences of terminals.
RED: Final = "\x1b[31m"
YELLOW: Final = "\x1b[33m"
CYAN: Final = "\x1b[36m"
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
RESET: Final = "\x1b[0m"


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
        """Subject and problem; the problem's location precedes them if it is in another file."""
        elsewhere = self.problem.location
        return (
            f"{elsewhere}: {self.problem.statement}" if elsewhere.file else self.problem.statement
        )

    @property
    def message(self) -> str:
        """The text without the location in the report's own file."""
        return str(self.problem)


@dataclass(frozen=True, slots=True)
class FileReport:
    """All findings in one file, sorted by location. ``source`` has the file's lines."""

    file: str
    findings: tuple[LintFinding, ...] = ()
    source: tuple[str, ...] = field(default=(), repr=False)
    of_stack: bool = False
    """True for the stack file, and for its files other than job files."""

    @classmethod
    def from_problems(
        cls, file: str, source: str, problems: Iterable[Problem], *, of_stack: bool = False
    ) -> FileReport:
        """Return a report of the distinct problems of a file."""
        lines = tuple(re.split(r"\r\n|[\n\r\x85\u2028\u2029]", source))  # YAML's line breaks
        findings = [_finding(problem, file, lines) for problem in problems]
        unique = dict.fromkeys(findings)
        return cls(file, tuple(sorted(unique, key=_order)), lines, of_stack)

    def count(self, level: Level) -> int:
        """Return the number of findings of this level."""
        return sum(finding.level == level for finding in self.findings)

    def without_notes(self) -> FileReport:
        """Return the report with only errors and warnings."""
        findings = tuple(finding for finding in self.findings if finding.level != "note")
        return dataclasses.replace(self, findings=findings)

    def merged(self, other: FileReport) -> FileReport:
        """Return a report with the findings of this report and of ``other``, on the same file."""
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
    else:  # in a package or a folder: reported at the top
        location = Location()
    line, column = max(location.line, 1), max(location.column, 1)
    text = lines[line - 1] if line <= len(lines) else ""
    return LintFinding(file, line, column, end_of_value(text, column), own)


def end_of_value(line: str, column: int) -> int:
    """Return the column after the key or value at ``column``, at least ``column`` + 1.

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


class TerminalStyle:
    """Function that adds colors for a terminal, if enabled."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *styles: str) -> str:
        return "".join(styles) + text + RESET if self.color and text else text


def text_lines(reports: Sequence[FileReport], *, color: bool) -> Iterator[str]:
    """Yield the lines of all findings, and a summary."""
    style = TerminalStyle(color)
    for report in reports:
        for finding in report.findings:
            yield headline(finding, style)
            yield from excerpt(finding, report.source, style)
    yield style(summary(reports), BOLD)


def headline(finding: LintFinding, style: TerminalStyle) -> str:
    """Return ``file:line:column: LEVEL: mistake (got X). Hint: …  [rule]``, without ``error``."""
    place = f"{finding.file}:{finding.line}:{finding.column}:"
    level = "" if finding.level == "error" else style(f"{finding.level}:", _color(finding)) + " "
    rule = f" {style(f'[{finding.rule}]', DIM)}" if finding.rule else ""
    return f"{style(plain(place), BOLD)} {level}{plain(finding.message)}{rule}"


def excerpt(finding: LintFinding, source: Sequence[str], style: TerminalStyle) -> Iterator[str]:
    """Yield the source line and a line with carets; yield neither if a secret is possible."""
    if finding.rule.startswith("secret-") or "env" in finding.problem.path:
        return
    if not 0 < finding.line <= len(source) or not source[finding.line - 1].strip():
        return
    line, start = source[finding.line - 1], finding.column - 1
    cut = max(0, start - WIDTH // 2) if len(line) > WIDTH else 0
    shown, more = _window(line, cut), len(line) > cut + WIDTH
    before = plain(shown[: start - cut])
    width = sum(map(cells, plain(shown[start - cut : finding.end_column - 1 - cut]))) or 1
    lead, tail = "…" if cut else "", "…" if more else ""
    number = f"{finding.line:>6} | "
    yield style(number, DIM) + lead + plain(shown) + tail
    padding = " " * (len(number) + len(lead) + sum(map(cells, before)))
    mark = "^" * min(width, WIDTH)
    yield padding + style(mark, _color(finding))


def _color(finding: LintFinding) -> str:
    return {"error": RED, "warning": YELLOW}.get(finding.level, CYAN)


def _window(line: str, cut: int) -> str:
    """Return up to ``WIDTH`` characters of a line from ``cut``, with secrets masked."""
    begin = max(0, cut - NEAR)
    return masked(line[begin : cut + WIDTH + NEAR])[cut - begin :][:WIDTH]


def summary(reports: Sequence[FileReport]) -> str:
    """Return the last line of the output: the checked files and the number of problems.

    >>> summary([]), summary([FileReport("j.yaml"), FileReport("Pulumi.dev.yaml", of_stack=True)])
    ('0 files, no mistakes.', '1 file and Pulumi.dev.yaml, no mistakes.')
    """
    errors, warnings, notes = (sum(r.count(level) for r in reports) for level in LEVELS)
    others = [plain(report.file) for report in reports if report.of_stack]
    others = others if len(others) < 3 else [f"{len(others)} files of the stack"]
    of_jobs = sum(not report.of_stack for report in reports)
    jobs = [_plural(of_jobs, "file")] if of_jobs else []
    files = " and ".join([*jobs, *others]) or "0 files"
    if not errors and not warnings and not notes:
        return f"{files}, no mistakes."
    parts = [_plural(errors, "error")] if errors else ["no errors"]
    parts += [_plural(warnings, "warning")] if warnings else []
    parts += [_plural(notes, "note")] if notes else []
    if any(len(report.findings) >= MAX_PROBLEMS for report in reports):
        parts.append(f"possibly more: a check of a file stops at {MAX_PROBLEMS} problems")
    return f"{files}: {', '.join(parts)}."


def cells(char: str) -> int:
    """Return the width of a character on a terminal, in columns."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
