"""Writes the report as Markdown for a pull request, with details folded.

GitHub accepts 65,536 characters a comment. A longer report is shortened level by level until it
fits. It always lists all jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from vertex_training_cli.engine.values import FieldDifference
from vertex_training_cli.review import headline
from vertex_training_cli.review.escaping import block, code, label
from vertex_training_cli.review.parts import (
    Differences,
    Entry,
    Fold,
    Graph,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Table,
    Verbatim,
    shortened,
)
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.sections import sections

#: Maximum bytes of a report, to leave space for the text that a workflow adds to a comment.
LIMIT: Final = 64_000
#: Kind of a node -> Mermaid's brackets around its label.
SHAPES: Final = {"bucket": ('[("', '")]'), "secret": ('[/"', '"/]'), "account": ('(["', '"])')}


@dataclass(frozen=True, slots=True)
class Verbosity:
    """Level of detail of a report. ``LEVELS`` are in descending order."""

    fields: int
    """Number of fields shown of a changed resource or job; the rest is counted."""
    others: int
    """Number of other changes listed by name."""
    draw: bool
    """True if the report has a graph."""
    shorter: int = 0
    """Display of jobs: a table (0), a line per job (1), or only names (2)."""

    @property
    def items(self) -> int:
        """Maximum number of entries in a list, except in lists of jobs."""
        return max(20, self.others)


LEVELS: Final = (
    Verbosity(fields=200, others=1000, draw=True),
    Verbosity(fields=20, others=200, draw=True),
    Verbosity(fields=5, others=40, draw=True),
    Verbosity(fields=0, others=20, draw=False),
    Verbosity(fields=0, others=0, draw=False, shorter=1),
    Verbosity(fields=0, others=0, draw=False, shorter=2),
)


def render(report: ReviewReport, limit: int = LIMIT) -> str:
    """Return the report, shortened to at most ``limit`` bytes."""
    text = ""
    report_sections = sections(report, code, lambda words: f"**{words}**")
    for verbosity in LEVELS:
        text = "\n".join(_lines(report, report_sections, verbosity)) + "\n"
        if len(text.encode()) <= limit:
            return text
    # Thousands of jobs or mistakes: the most important lines come first.
    head = text.encode()[: limit - 100].decode(errors="ignore").rpartition("\n")[0]
    return f"{head}\n\nCut at the comment size limit. `--format html` writes the full report.\n"


def _lines(
    report: ReviewReport, report_sections: list[ReportSection], verbosity: Verbosity
) -> Iterator[str]:
    ready, why = headline.readiness(report)
    yield f"## Review of stack {headline.subject(report, code)}"
    yield from ("", f"**{ready}:** {why}.", "")
    remaining = headline.commands(report)
    yield from (f"{number}. {code(command)}" for number, command in enumerate(remaining, start=1))
    yield from ("",) if remaining else ()
    yield from (f"**{headline.verdict(report, code)}**", "")
    answered = headline.rows(report, code)
    yield from table_rows(("subject", "change"), ((e.head, "<br>".join(e.lines)) for e in answered))
    if nothing := headline.without_row(report, code):
        yield from ("", nothing)
    yield ""
    for section in report_sections:
        yield from _section(section, verbosity)
    if verbosity is not LEVELS[0]:
        yield "Shortened to the comment size limit; `--format html` writes the full report."
        yield ""
    where = f"project {code(report.project)}, {code(report.region)}; " if report.project else ""
    yield f"<sub>{where}{report.source}. Plan {code(report.digest)}</sub>"


def _section(section: ReportSection, verbosity: Verbosity) -> Iterator[str]:
    body = [line for part in section.parts for line in _part(part, verbosity)]
    if section.fold == "never":
        yield from (f"### {section.title}", "") if section.title else ()
        yield from body
    elif body:
        count = f": {_words(section.count, verbosity)}" if section.count else ""
        yield from _folded(f"{section.title}{count}", body)


def _part(part: Part, verbosity: Verbosity) -> Iterator[str]:
    match part:
        case Paragraph():
            yield from (_words(part, verbosity), "")
        case Verbatim():
            yield from (block("\n".join(shortened(part.lines, verbosity.items))), "")
        case Listing():
            yield from _listing(part, verbosity)
        case Table():
            yield from _table(part, verbosity)
        case Differences():
            if verbosity.fields:
                yield from _folded(part.summary, _fields(part.fields, verbosity.fields))
        case Fold():
            inside = (line for inner in part.parts for line in _part(inner, verbosity))
            yield from (part.comment, "") if part.comment else _folded(part.summary, inside)
        case Graph():
            if verbosity.draw:
                yield from (*_mermaid(part), "```")


def _words(part: Paragraph, verbosity: Verbosity) -> str:
    separator = "; " if part.by_semicolon else ", "
    return f"{part.words}{separator.join(shortened(part.names, verbosity.items))}{part.end}"


def _listing(part: Listing, verbosity: Verbosity) -> Iterator[str]:
    most = verbosity.others if part.minor else verbosity.items
    for group in part.groups:
        for entry in group[:most]:
            yield from _entry(entry, verbosity)
        yield from _more(len(group) - most)
    yield ""


def _entry(entry: Entry, verbosity: Verbosity) -> Iterator[str]:
    yield f"- **{entry.lead}** {entry.text}" if entry.lead else f"- {entry.text}"
    if entry.in_comment:
        yield from (f"  {line}" for line in _fields(entry.fields, verbosity.fields))
    if entry.note:
        yield f"  - {entry.note}"


def _table(part: Table, verbosity: Verbosity) -> Iterator[str]:
    if part.shorter and verbosity.shorter:
        for entry in part.shorter[verbosity.shorter - 1].groups[0]:
            yield from _entry(entry, verbosity)
        yield ""
        return
    most = len(part.rows) if part.shorter else verbosity.items
    rows = (tuple("<br>".join(cell) for cell in row.cells) for row in part.rows[:most])
    yield from (*table_rows(part.columns, rows), "")
    left = _more(len(part.rows) - most)
    yield from (*left, "") if left or part.spaced else ()


def _fields(fields: Sequence[FieldDifference], most: int) -> Iterator[str]:
    for field in fields[:most]:
        old = "(absent)" if field.old is None else code(field.old)
        new = "(absent)" if field.new is None else code(field.new)
        yield f"- {code(field.path)}: {old} → {new}"
    if most and len(fields) > most:
        yield f"- and {len(fields) - most} more fields"


def _more(left: int) -> list[str]:
    return [f"- and {left} more"] if left > 0 else []


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    # GitHub renders the content as Markdown only between empty lines.
    body = list(lines)
    if body[-1:] == [""]:
        body.pop()
    yield from (f"<details><summary>{summary}</summary>", "", *body, "", "</details>", "")


def table_rows(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    columns = tuple(columns)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _mermaid(drawn: Graph) -> Iterator[str]:
    yield from ("```mermaid", "flowchart LR")
    ids = {node: f"n{number}" for number, node in enumerate(drawn.nodes)}
    for node, id_ in ids.items():
        before, after = SHAPES.get(node.kind, ('["', '"]'))
        yield f"  {id_}{before}{label(node.text)}{after}"
    for edge in drawn.edges:
        yield f'  {ids[edge.one]} -- "{label(edge.verb)}" --> {ids[edge.other]}'
    if drawn.undrawn:
        yield f'  more["and {drawn.undrawn}"]'
    if new := [str(number) for number, edge in enumerate(drawn.edges) if edge.new]:
        yield f"  linkStyle {','.join(new)} stroke:#8a5a00,stroke-width:3px"
