"""Findings for people: one line each, then the source line with a caret under the value."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from vertex_training.located_yaml.document import MAX_PROBLEMS
from vertex_training.secret_rules.redaction import masked
from vertex_training_cli.check.report import LEVELS, FileReport, LintFinding
from vertex_training_cli.console import plain

#: Characters of a source line that are shown, at most.
WIDTH: Final = 100
#: Characters on both sides of that in which secrets are searched; a line may have megabytes.
NEAR: Final = 400
#: Escape sequences of terminals.
RED: Final = "\x1b[31m"
YELLOW: Final = "\x1b[33m"
CYAN: Final = "\x1b[36m"
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
RESET: Final = "\x1b[0m"


class TerminalStyle:
    """Colours for a terminal, or none at all."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, *styles: str) -> str:
        return "".join(styles) + text + RESET if self.color and text else text


def lines(reports: Sequence[FileReport], *, color: bool) -> Iterator[str]:
    """All findings, and a line that counts them."""
    style = TerminalStyle(color)
    for report in reports:
        for finding in report.findings:
            yield headline(finding, style)
            yield from excerpt(finding, report.source, style)
    yield style(summary(reports), BOLD)


def headline(finding: LintFinding, style: TerminalStyle) -> str:
    """``file:line:column: what is wrong (got X). Hint: …  [rule]``; others are marked."""
    place = f"{finding.file}:{finding.line}:{finding.column}:"
    level = "" if finding.level == "error" else style(f"{finding.level}:", _color(finding)) + " "
    rule = f" {style(f'[{finding.rule}]', DIM)}" if finding.rule else ""
    return f"{style(plain(place), BOLD)} {level}{plain(finding.message)}{rule}"


def excerpt(finding: LintFinding, source: Sequence[str], style: TerminalStyle) -> Iterator[str]:
    """The source line and a caret line below it; none of a line that may hold a secret."""
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
    """The part of a line to show, from ``cut`` on. A secret may begin before it and end behind."""
    begin = max(0, cut - NEAR)
    return masked(line[begin : cut + WIDTH + NEAR])[cut - begin :][:WIDTH]


def summary(reports: Sequence[FileReport]) -> str:
    """The last line.

    >>> summary([])
    '0 files, no mistakes.'
    """
    errors, warnings, notes = (sum(r.count(level) for r in reports) for level in LEVELS)
    files = _plural(len(reports), "file")
    if not errors and not warnings and not notes:
        return f"{files}, no mistakes."
    parts = [_plural(errors, "error")] if errors else ["no errors"]
    parts += [_plural(warnings, "warning")] if warnings else []
    parts += [_plural(notes, "note")] if notes else []
    if any(len(report.findings) >= MAX_PROBLEMS for report in reports):
        parts.append(f"and maybe more: checking a file ends after {MAX_PROBLEMS}")
    return f"{files}: {', '.join(parts)}."


def cells(char: str) -> int:
    """Columns a character takes on a terminal."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
