"""Output for people. Colours only on a terminal; NO_COLOR is honoured (by rich itself).

What looks like a secret in a cell or a fact is redacted. Text of others (logs, values of files)
passes ``plain``, ``plain_lines`` or ``json_text``: nothing of it acts on a terminal.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

from vertex_training.vt.engine.values import redact

#: Columns where there is no terminal: what is searched there, line by line, must not be folded.
_PLAIN_WIDTH: Final = 10_000
#: Longest word of a cell that is kept whole where columns have to share a narrow terminal.
_MAX_WORD: Final = 20
#: What any other column needs.
_LEAST: Final = 8


def console() -> Console:
    """A console on stdout. Text is shown as it is: brackets and colons in it mean nothing."""
    from rich.console import Console  # as below: the command `check` needs no more than text

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def plain(text: Iterable[str]) -> str:
    """``text`` without anything a terminal would act upon; a tab becomes one space."""
    return "".join(
        " " if char == "\t" else char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def plain_lines(text: str) -> str:
    """As ``plain``, with the ends of lines."""
    return "\n".join(map(plain, text.split("\n")))


def json_text(value: Any) -> str:
    """JSON on one line, with escapes for what a terminal would act upon."""
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1]
        for char in json.dumps(value, ensure_ascii=False)
    )


def show_facts(out: Console, head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> None:
    """What there is to say of one thing, a fact a line.

    A long value is left to the terminal to fold: an address that is cut into table cells can
    neither be followed nor copied.
    """
    facts = [(key, redact(value)) for key, value in (head, *rows)]
    width = max(len(key) for key, _ in facts)
    for number, (key, value) in enumerate(facts):
        out.print(
            f"{key:{width}}  {plain_lines(value)}", style="" if number else "bold", soft_wrap=True
        )


def table(*columns: str, rows: Iterable[tuple[str, ...]], title: str | None = None) -> Table:
    """A small table: no frame, left aligned. A narrow terminal cuts no id in two, if it can."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    cells = [[plain_lines(redact(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    words = [not any(" " in cell for cell in column) for column in zip(*cells, strict=True)]
    whole = [word and width <= _MAX_WORD for word, width in zip(words, widths, strict=False)]
    needed = sum(width if kept else _LEAST for width, kept in zip(widths, whole, strict=False))
    fits = needed + (len(columns) - 1) * 2 <= shutil.get_terminal_size().columns
    for number, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=fits and bool(whole) and whole[number])
    for row in cells:
        made.add_row(*row)
    return made
