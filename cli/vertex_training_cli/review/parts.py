"""What a section of the report is made of: paragraphs, lists, tables, fields that differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review.picture import Graph
from vertex_training_cli.review.risk import Danger

#: Characters of a value that is a sentence.
SENTENCE: Final = 400


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Words; ``names``, of which a comment has the first ones; and what ends them."""

    words: str
    names: tuple[str, ...] = ()
    end: str = ""
    by_semicolon: bool = False
    """Whether names are phrases, with commas in them."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines of a text that is shown as it is. They are not quoted yet."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list."""

    text: str
    lead: str = ""
    """Stands out before it."""
    danger: Danger = "plain"
    name: str = ""
    """Whose fields follow. Not quoted yet, nor are they."""
    fields: tuple[FieldDifference, ...] = ()
    in_comment: bool = True
    """Whether a comment has the fields, too."""
    note: str = ""
    """A line below it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries in groups; a comment shortens each group by itself."""

    groups: tuple[tuple[Entry, ...], ...]
    minor: bool = False
    """Whether a comment shortens it before anything else."""


@dataclass(frozen=True, slots=True)
class Row:
    """Cells, each of lines; the first cell is coloured."""

    cells: tuple[tuple[str, ...], ...]
    danger: Danger = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below columns."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    spaced: bool = False
    """Whether one more empty line follows in a comment."""
    shorter: tuple[Listing, ...] = ()
    """What a comment has in its place, when it is short of space, and when it is very short: all
    of the rows, at any length. Without these, a comment shows as many rows as entries of a list."""


@dataclass(frozen=True, slots=True)
class Differences:
    """Fields that differ below a line. They are not quoted yet."""

    summary: str
    fields: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are hidden until somebody asks for them."""

    summary: str
    parts: tuple[Part, ...]
    comment: str = ""
    """What a comment has instead."""


Part = Paragraph | Verbatim | Listing | Table | Differences | Fold | Graph


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report with a title."""

    title: str
    parts: tuple[Part, ...]
    count: Paragraph | None = None
    """What is seen while it is folded."""
    fold: Literal["never", "comment", "always"] = "never"
    """Where it is folded."""


def to_section(title: str, part: Part | None) -> ReportSection:
    """A section of one part; empty without it."""
    return ReportSection(title, (part,) if part else ())


def to_table(
    caption: str, columns: tuple[str, ...], rows: Iterable[Row], *, spaced: bool = False
) -> Table | None:
    """A table; None without rows."""
    rows = tuple(rows)
    return Table(caption, columns, rows, spaced) if rows else None
