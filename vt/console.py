"""Output for people. Colours only on a terminal; NO_COLOR is honoured (by rich itself).

What looks like a secret in a cell or a fact is redacted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table

from vt.engine.values import redact

#: Columns where there is no terminal: what is searched there, line by line, must not be folded.
_PLAIN_WIDTH: Final = 10_000


def console() -> Console:
    """A console on stdout. Text is shown as it is: brackets and colons in it mean nothing."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def show_facts(out: Console, head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> None:
    """What there is to say of one thing, a fact a line.

    A long value is left to the terminal to fold: an address that is cut into table cells can
    neither be followed nor copied.
    """
    facts = [(key, redact(value)) for key, value in (head, *rows)]
    width = max(len(key) for key, _ in facts)
    for number, (key, value) in enumerate(facts):
        out.print(f"{key:{width}}  {value}", style="" if number else "bold", soft_wrap=True)


def table(*columns: str, rows: Iterable[tuple[str, ...]], title: str | None = None) -> Table:
    """A small table: no frame, left aligned."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*map(redact, row))
    return made
