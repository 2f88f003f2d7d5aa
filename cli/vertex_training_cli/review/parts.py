"""Elements of a report: findings, topics of the summary, parts of sections, and escaped texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, Final, Literal, Self, TypeVar

from vertex_training_cli.console import is_seen
from vertex_training_cli.engine.values import FieldDifference

#: Severity of an entry. The HTML page shows "opens" in amber and "destroys" in red.
Danger = Literal["plain", "opens", "destroys"]


class Topic(StrEnum):
    """Topics of the summary in their order: key in JSON, heading of the row, and danger."""

    head: str
    danger: Danger

    def __new__(cls, key: str, head: str, danger: Danger = "opens") -> Self:
        """Return the topic ``key``."""
        topic = str.__new__(cls, key)
        topic._value_, topic.head, topic.danger = key, head, danger
        return topic

    RUNS = "what runs", "Jobs and traffic", "plain"
    COSTS = "what it can cost", "Cost", "plain"
    RIGHTS = "who gains a right", "Grants"
    LOST = "what is lost", "Losses", "destroys"
    PUBLIC = "what becomes public", "Public access", "destroys"
    STOPS = "what stops", "Stopped jobs", "destroys"
    REPLACED = "what is replaced", "Replacements", "destroys"
    LIMITS = "which limits are raised", "Limits and guards"
    POLICIES = "what policies say", "Policies"
    READABLE = "whose data becomes readable", "Data access"
    UNSEEN = "what was not looked at", "Not checked"
    BINDS = "what the digest binds", "Approval", "plain"


#: Maximum number of names in one part of a sentence; further names are counted.
NAMED: Final = 3
#: Maximum length of a value that is a sentence.
SENTENCE: Final = 400
#: Kind of the node for all users.
EVERYBODY: Final = "everybody"
#: Function that escapes a name or a value for a format, and cuts it to an optional length.
Quote = Callable[..., str]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One result of a review: a resource, a setting or a member."""

    name: str
    what: Any = ""
    """Description, or a tuple of names."""
    old: Any = ""
    new: Any = ""
    also: Any = ""
    """Additional value of this kind of finding."""


class Change(SimpleNamespace):
    """A resource after the plan, or before a removal. Its attributes are the keys of JSON."""


def first(names: Sequence[str]) -> str:
    """Return the first few names, and the number of further names."""
    left = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {left} more" if left > 0 else "")


def shortened(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first lines, and a line with the number of further lines."""
    left = len(lines) - most
    return (*lines[:most], *((f"and {left} more",) if left > 0 else ()))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text with a list of names. A comment shows only the first names."""

    words: str
    names: tuple[str, ...] = ()
    end: str = ""
    by_semicolon: bool = False
    """True if semicolons separate the names, because names contain commas."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Unescaped lines of a text without markup."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list."""

    text: str
    lead: str = ""
    danger: Danger = "plain"
    name: str = ""
    """Name of the resource whose fields differ. Name and fields are unescaped."""
    fields: tuple[FieldDifference, ...] = ()
    in_comment: bool = True
    """True if a pull request comment also shows the resource's differing fields."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Groups of entries. A comment shortens each group separately."""

    groups: tuple[tuple[Entry, ...], ...]
    minor: bool = False
    """True if a comment shortens this list before other lists."""


@dataclass(frozen=True, slots=True)
class Row:
    """Cells with one or more lines. The page colors the first cell by ``danger``."""

    cells: tuple[tuple[str, ...], ...]
    danger: Danger = "plain"


@dataclass(frozen=True, slots=True)
class Table:
    """Table with a caption."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    spaced: bool = False
    """True if a comment has an additional empty line after the table."""
    shorter: tuple[Listing, ...] = ()
    """Two shorter replacements for comments with little space. Each lists all rows."""


@dataclass(frozen=True, slots=True)
class Differences:
    """Unescaped fields that differ, below a summary."""

    summary: str
    fields: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are hidden until a reader opens the summary."""

    summary: str
    parts: tuple[Part, ...]
    comment: str = ""
    """Text of a comment in place of the summary and the parts."""


@dataclass(frozen=True, slots=True)
class Node:
    """A resource of the stack, or a member of a binding."""

    kind: str
    name: str

    @property
    def text(self) -> str:
        """Return the text in the node's box."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Edge:
    """Relation between two nodes."""

    one: Node
    other: Node
    verb: str
    new: bool

    @property
    def is_public(self) -> bool:
        """Return True if the subject is all users."""
        return self.one.kind == EVERYBODY


@dataclass(frozen=True, slots=True)
class Graph:
    """Relations between the members and resources of a stack."""

    edges: tuple[Edge, ...]
    undrawn: str
    """Numbers of omitted grants and endpoints; empty if nothing is omitted."""

    @property
    def nodes(self) -> list[Node]:
        """Return the nodes in order of appearance."""
        return list(dict.fromkeys(node for edge in self.edges for node in (edge.one, edge.other)))

    @property
    def new(self) -> list[int]:
        """Return the indexes of new edges."""
        return [index for index, edge in enumerate(self.edges) if edge.new]


Part = Paragraph | Verbatim | Listing | Table | Differences | Fold | Graph


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report with a title."""

    title: str
    parts: tuple[Part, ...]
    count: Paragraph | None = None
    """Text that the heading shows while the section is folded."""
    fold: Literal["never", "comment", "always"] = "never"
    """Formats in which the section is folded."""


Cell = str | tuple[str, ...]
T = TypeVar("T")


def to_tables(
    caption: str,
    items: Iterable[T],
    columns: Mapping[str, Callable[[T], Cell]],
    danger: Callable[[T], Danger] = lambda _: "plain",
    *,
    spaced: bool = False,
    shorter: tuple[Listing, ...] = (),
) -> tuple[Table, ...]:
    """Return a table with a row for each item; empty without items."""

    def row(item: T) -> Row:
        cells = (column(item) for column in columns.values())
        return Row(tuple((c,) if isinstance(c, str) else c for c in cells), danger(item))

    rows = tuple(map(row, items))
    return (Table(caption, tuple(columns), rows, spaced, shorter),) if rows else ()


def to_listings(*groups: Iterable[str | Entry]) -> tuple[Listing, ...]:
    """Return a list for each group with entries."""
    entries = (
        tuple(Entry(row) if isinstance(row, str) else row for row in group) for group in groups
    )
    return tuple(Listing((entry,)) for entry in entries if entry)


#: Maximum length of a shown value. The JSON report has full values.
MAX_SHOWN: Final = 160

#: Characters that reports add to names, and that are not escaped.
OWN: Final = "…→"
#: Punctuation before and after a word.
_EDGES: Final = re.compile(r"\A\W+|\W+\Z")
#: Scripts without blanks between words and without letters that resemble Latin letters.
_EAST_ASIAN: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


def visible(value: str) -> str:
    """Return ``value`` on one line, with invisible characters spelled out, and names in ASCII.

    Names in Google Cloud and Pulumi are ASCII, so that another letter in a name is a look-alike. A
    single word is a name, and a word that mixes ASCII with letters other than Latin is a name.

    >>> visible("a\\n b\\u202e"), visible("of b\\u0430nk")
    ('a b\\\\u202e', 'of b\\\\u0430nk')
    >>> visible("Größe, 3 €")
    'Größe, 3 €'
    """
    words = value.split()
    line = " ".join(words)
    if line.isascii() and line.isprintable():  # nearly all values
        return line
    return " ".join(_visible_word(word, is_name=len(words) == 1) for word in words)


def _visible_word(word: str, *, is_name: bool) -> str:
    if word.isascii() and word.isprintable():
        return word
    bare = _EDGES.sub("", word)
    is_name = not _EAST_ASIAN.fullmatch(bare) and (is_name or not _is_prose(bare))
    return "".join(
        char
        if is_seen(char) and (char.isascii() or not is_name or char in OWN)
        else _escape_sequence(char)
        for char in word
    )


def _is_prose(word: str) -> bool:
    """Return True if a word is in one script, or in Latin letters with accents."""
    latin = (char in "-'\u2019" or (char.isalpha() and char <= "\u024f") for char in word)
    return not any(map(str.isascii, word)) or all(latin)


def cut(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``visible(value)``, cut to ``length`` characters."""
    line = visible(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def code(value: str, length: int = MAX_SHOWN) -> str:
    """Return ``value`` as code in Markdown, which is also valid in a table.

    Code has no mentions, links or emoji. A pipe would end a table's cell, and a backtick the code,
    even after a backslash. Such values are written as HTML entities.
    """
    line = cut(value, length)
    if not line:
        return ""
    if "|" in line or "`" in line or line.endswith("\\"):
        entities = re.sub(r"[^\w ]|_", lambda match: f"&#{ord(match[0])};", line)
        return f"<code>{entities}</code>"
    return f"`{line}`"


def block(value: str) -> str:
    """Return lines as a block of code in Markdown."""
    lines = [visible(line) for line in value.splitlines()]
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def table_rows(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown. Cells are escaped."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def label(value: str) -> str:
    """Return ``value`` for a quoted label of a Mermaid graph."""
    return re.sub(r"[^\w \-./]", lambda match: f"#{ord(match[0])};", cut(value, 60))


def _escape_sequence(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
