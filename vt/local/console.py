"""Output for people. Colours only on a terminal; NO_COLOR is honoured (by rich itself)."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 200
"""Columns where there is no terminal: a pipe should not cut lines at 80."""


def console() -> Console:
    """A console on stdout."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_PLAIN_WIDTH)


def table(*columns: str, rows: Iterable[tuple[str, ...]], title: str | None = None) -> Table:
    """A small table: no frame, left aligned."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made
