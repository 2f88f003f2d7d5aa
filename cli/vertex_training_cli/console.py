"""Output for people. Colors only on a terminal, and not with NO_COLOR (handled by rich).

Tables redact secrets. ``plain``, ``plain_lines`` and ``json_text`` remove control characters from
texts of other programs. ``print_line`` prints to stderr: stdout is for results.
"""

from __future__ import annotations

import functools
import json
import math
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from vertex_training_cli.engine.values import redact

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Number of columns without a terminal, because programs that search the output need whole lines.
PLAIN_WIDTH: Final = 10_000
#: Maximum length of a word that stays unsplit on a narrow terminal.
_MAX_WORD: Final = 20
#: Heading of a last column. A table that is too wide shows this column below the first column.
_ID: Final = "ID"
#: Minimum width of a column that may be wrapped.
_LEAST: Final = 8
#: Minimum width of a wrapped column in a table in which only columns with ids stay unwrapped.
_NARROW: Final = 4

#: Words in Unicode names of printable characters that are invisible or change the preceding
#: character.
_UNSEEN: Final = re.compile(
    r"\b(?:FILLER|BLANK|NULL NOTEHEAD|SELECTOR(?:-\d+)?|GRAPHEME JOINER|VOWEL INHERENT)\b"
)


def console() -> Console:
    """Return a console on stdout that shows text literally, including brackets and colons."""
    from rich.console import Console  # `vt check` starts without rich.

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


@functools.lru_cache(maxsize=4096)
def is_seen(char: str) -> bool:
    """Return True if a printed character is visible or a blank."""
    return char.isprintable() and not _UNSEEN.search(unicodedata.name(char, ""))


def plain(text: Iterable[str]) -> str:
    """Return ``text`` with control characters replaced, and tabs as spaces."""
    return "".join(
        " " if char == "\t" else char if is_seen(char) else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def plain_lines(text: str) -> str:
    """Return ``text`` like ``plain``, but with its line ends."""
    return "\n".join(map(plain, text.split("\n")))


def json_text(value: Any) -> str:
    """Return JSON on one line, with control characters escaped."""
    return "".join(
        char if is_seen(char) else json.dumps(char)[1:-1]
        for char in json.dumps(_finite(value), ensure_ascii=False)
    )


def json_document(value: Any) -> str:
    """Return JSON on several lines."""
    return json.dumps(_finite(value), indent=2)


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot express, as protobuf.dev/programming-guides/json does."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("Iterable[Any]", value)]
    return value


def show_facts(out: Console, head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> None:
    """Print the properties of one resource, one per line. The terminal wraps long values."""
    facts = [(plain(key), redact(value)) for key, value in (head, *rows)]
    width = max(len(key) for key, _ in facts)
    for number, (key, value) in enumerate(facts):
        out.print(
            f"{key:{width}}  {plain_lines(value)}", style="" if number else "bold", soft_wrap=True
        )


def table(*columns: str, rows: Iterable[tuple[str, ...]]) -> Table:
    """Return a left-aligned table without frame. On a narrow terminal, ids are wrapped last."""
    from rich.table import Table

    columns = tuple(map(plain, columns))
    grid = Table(box=None, pad_edge=False)
    cells = [tuple(plain_lines(redact(cell)) for cell in row) for row in rows]
    whole, fits = _unwrapped_columns(columns, cells)
    if not fits and columns[-1] == _ID and len(columns) > 1:
        columns, cells = _stacked(columns, cells)
        whole, _ = _unwrapped_columns(columns, cells)
    for column, kept in zip(columns, whole, strict=True):
        grid.add_column(column, overflow="fold", no_wrap=kept)
    for row in cells:
        grid.add_row(*row)
    return grid


def _unwrapped_columns(
    columns: tuple[str, ...], rows: list[tuple[str, ...]]
) -> tuple[list[bool], bool]:
    """Return True for each column that stays unwrapped, and True if all columns fit.

    Columns of short words stay unwrapped. In a narrow terminal, only columns of ids do.
    """
    texts = [(column, *cells) for column, *cells in zip(columns, *rows, strict=True)]
    widths = [max(len(line) for cell in text for line in cell.split("\n")) for text in texts]
    words = [not any(" " in cell for cell in text[1:]) for text in texts]
    whole = [word and width <= _MAX_WORD for word, width in zip(words, widths, strict=True)]
    needed = sum(width if kept else _LEAST for width, kept in zip(widths, whole, strict=True))
    room = shutil.get_terminal_size().columns - (len(columns) - 1) * 2
    if needed <= room:
        return whole, True
    ids = [kept and _ID in column.split(", ") for kept, column in zip(whole, columns, strict=True)]
    least = sum(width if kept else _NARROW for width, kept in zip(widths, ids, strict=True))
    return (ids if least <= room else [False] * len(columns)), False


def _stacked(
    columns: tuple[str, ...], rows: list[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Move the last column below the first column, and wrap the names to the width of the ids."""
    import textwrap

    width = max((len(row[-1]) for row in rows), default=0) or 1
    stacked = [("\n".join((*textwrap.wrap(row[0], width), row[-1])), *row[1:-1]) for row in rows]
    return (f"{columns[0]}, {columns[-1]}", *columns[1:-1]), stacked


#: Package that only an extra of this distribution installs -> name of the extra.
EXTRAS: Final[Mapping[str, str]] = {
    "typer": "cli",
    "rich": "cli",
    "jinja2": "cli",
    "psutil": "cli",
    "google.cloud.secretmanager": "cli",
    "google.cloud.devtools": "cli",
    "localgcp": "cli",
}


def print_line(text: object) -> None:
    """Print ``text`` to stderr, without secrets and control characters."""
    print(plain_lines(redact(str(text))), file=sys.stderr, flush=True)


def print_status(text: str) -> None:
    """Print a status line of ``vt`` to stderr. stdout has results and the output of ``pulumi``."""
    print_line(f"vt: {text}")


def extra_hint(module: str) -> str:
    """Return the command that installs the extra with a module; empty without such an extra."""
    extras = [extra for name, extra in EXTRAS.items() if f"{module}.".startswith(f"{name}.")]
    return f"install vertex-training[{extras[0]}] from its wheels" if extras else ""
