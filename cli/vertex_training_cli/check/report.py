"""Findings in files, as text, as JSON and as annotations of GitHub Actions; a list of all rules."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import typer

from vertex_training.customjob import rules
from vertex_training.customjob.rules.registry import Rule
from vertex_training.errors import Level, Location, Problem, counted
from vertex_training.located_yaml.document import MAX_PROBLEMS
from vertex_training.secret_rules.redaction import masked, redacted
from vertex_training_cli.console import plain

LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
#: A value in a line: quoted text, a reference, or plain YAML text up to its end.
TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"' r"|'(?:[^']|'')*'" r"|\$\{[^}]*\}[^\s,\]}]*" r"|[^\s,\[\]{}#:][^,\[\]{}#]*"
)
#: Maximum number of characters shown of a source line.
WIDTH: Final = 100
#: Number of characters around the shown part of a line that are also searched for secrets.
NEAR: Final = 400


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
        """Return ``error``, ``warning`` or ``note``."""
        return self.problem.level

    @property
    def rule(self) -> str:
        """Return the id of the rule."""
        return self.problem.rule

    @property
    def message(self) -> str:
        """Return the text without a location in the reported file."""
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


def _order(finding: LintFinding) -> tuple[int, int, int, str]:
    return finding.line, finding.column, LEVELS.index(finding.level), finding.rule


def _finding(problem: Problem, file: str, lines: tuple[str, ...]) -> LintFinding:
    problem = dataclasses.replace(
        problem, value=redacted(problem.value), hint=redacted(problem.hint)
    )
    location, own = problem.location, problem
    if location.file == file:
        own = problem.at(Location())
    else:  # A problem of a package or folder is reported on the first line.
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


def text_lines(reports: Sequence[FileReport], *, color: bool) -> Iterator[str]:
    """Yield the lines of all findings, and a summary."""

    def style(text: str, **styles: Any) -> str:
        return typer.style(text, **styles) if color and text else text

    for report in reports:
        for finding in report.findings:
            yield headline(finding, style)
            yield from excerpt(finding, report.source, style)
    yield style(summary(reports), bold=True)


def headline(finding: LintFinding, style: Callable[..., str]) -> str:
    """Return ``file:line:column: LEVEL: mistake (got X). Hint: …  [rule]``, without ``error``."""
    place = f"{finding.file}:{finding.line}:{finding.column}:"
    level = "" if finding.level == "error" else style(f"{finding.level}:", fg=_color(finding)) + " "
    rule = f" {style(f'[{finding.rule}]', dim=True)}" if finding.rule else ""
    return f"{style(plain(place), bold=True)} {level}{plain(finding.message)}{rule}"


def excerpt(
    finding: LintFinding, source: Sequence[str], style: Callable[..., str]
) -> Iterator[str]:
    """Yield the source line and a line with carets, unless the line may contain a secret."""
    if finding.rule.startswith("secret-") or "env" in finding.problem.path:
        return
    if not 0 < finding.line <= len(source) or not source[finding.line - 1].strip():
        return
    line, start = source[finding.line - 1], finding.column - 1
    cut = max(0, start - WIDTH // 2) if len(line) > WIDTH else 0
    begin, more = max(0, cut - NEAR), len(line) > cut + WIDTH
    shown = masked(line[begin : cut + WIDTH + NEAR])[cut - begin :][:WIDTH]
    before = plain(shown[: start - cut])
    width = _columns(plain(shown[start - cut : finding.end_column - 1 - cut])) or 1
    lead, tail = "…" if cut else "", "…" if more else ""
    number = f"{finding.line:>6} | "
    yield style(number, dim=True) + lead + plain(shown) + tail
    padding = " " * (len(number) + len(lead) + _columns(before))
    mark = "^" * min(width, WIDTH)
    yield padding + style(mark, fg=_color(finding))


def _columns(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _color(finding: LintFinding) -> str:
    return {"error": "red", "warning": "yellow"}.get(finding.level, "cyan")


def summary(reports: Sequence[FileReport]) -> str:
    """Return the last line of the output: the checked files and the number of problems.

    >>> summary([]), summary([FileReport("j.yaml"), FileReport("Pulumi.dev.yaml", of_stack=True)])
    ('0 files, no mistakes.', '1 file and Pulumi.dev.yaml, no mistakes.')
    """
    errors, warnings, notes = (sum(r.count(level) for r in reports) for level in LEVELS)
    others = [plain(report.file) for report in reports if report.of_stack]
    others = others if len(others) < 3 else [f"{len(others)} files of the stack"]
    of_jobs = sum(not report.of_stack for report in reports)
    jobs = [counted(of_jobs, "file")] if of_jobs else []
    files = " and ".join([*jobs, *others]) or "0 files"
    if not errors and not warnings and not notes:
        return f"{files}, no mistakes."
    parts = [counted(errors, "error")] if errors else ["no errors"]
    parts += [counted(warnings, "warning")] if warnings else []
    parts += [counted(notes, "note")] if notes else []
    if any(len(report.findings) >= MAX_PROBLEMS for report in reports):
        parts.append(f"more problems are possible: a check stops after {MAX_PROBLEMS} per file")
    return f"{files}: {', '.join(parts)}."


#: Version of the JSON report. It is increased when a field is removed or changes its meaning.
VERSION: Final = 1


def as_json(reports: Sequence[FileReport]) -> str:
    """Return all findings as a JSON document, with files in the order of the command line."""
    document = {
        "version": VERSION,
        **{f"{level}s": sum(report.count(level) for report in reports) for level in LEVELS},
        "files": [
            {"file": report.file, "findings": [_row(finding) for finding in report.findings]}
            for report in reports
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _row(finding: LintFinding) -> dict[str, str | int]:
    # A problem in another file has a location.
    elsewhere = f"{finding.problem.location}: " if finding.problem.location.file else ""
    return {
        "rule": finding.rule,
        "level": finding.level,
        "line": finding.line,
        "column": finding.column,
        "endColumn": finding.end_column,
        "what": f"{elsewhere}{finding.problem.statement}",
        "got": finding.problem.value,
        "hint": finding.problem.hint,
        "message": finding.message,
    }


#: Escapes in a workflow command's message and properties: github.com/actions/toolkit, command.ts.
IN_MESSAGE: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
IN_PROPERTY: Final = IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def as_workflow_commands(reports: Sequence[FileReport]) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each finding."""
    for report in reports:
        for finding in report.findings:
            place = {
                "file": finding.file,
                "line": finding.line,
                "col": finding.column,
                "endColumn": finding.end_column,
                "title": finding.rule,
            }
            properties = ",".join(
                f"{key}={str(value).translate(IN_PROPERTY)}"
                for key, value in place.items()
                if value
            )
            command = {"note": "notice"}.get(finding.level, finding.level)
            yield f"::{command} {properties}::{finding.message.translate(IN_MESSAGE)}"


def all_rules() -> list[Rule]:
    """Return all rules, sorted by id."""
    return sorted(rules.ALL, key=lambda rule: rule.id)


def link(source: str) -> str | None:
    """Return the URL of a rule's source; None if the source is a file of a package.

    >>> link("docs.cloud.google.com/x")
    'https://docs.cloud.google.com/x'
    """
    first = source.split()[0].rstrip(",;") if source.split() else ""
    if first.startswith(("https://", "http://")):
        return first
    host = first.partition("/")[0]
    is_page = "/" in first and host.endswith((".com", ".org", ".dev", ".io"))
    return f"https://{first}" if is_page else None


def rules_as_text(rows: Sequence[Rule]) -> Iterator[str]:
    """Yield lines with id, level, documentation and source of each rule."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    for row in rows:
        yield f"{row.id} ({row.level})"
        yield from textwrap.wrap(
            row.summary, width, initial_indent="    ", subsequent_indent="    "
        )
        yield f"    {row.source}"
    yield f"{len(rows)} rules"


def rules_as_json(rows: Sequence[Rule]) -> str:
    """Return all rules as JSON."""
    keys = ("id", "level", "summary", "source")
    table = [{key: getattr(row, key) for key in keys} | {"link": link(row.source)} for row in rows]
    return json.dumps({"rules": table}, indent=2, ensure_ascii=False)
