"""How far a transfer is: one changing line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vertex_training_cli.status import print_line

Advance = Callable[[int], None]

_SECONDS: Final = 10.0
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def in_units(size: float) -> str:
    """Bytes for people.

    >>> in_units(999), in_units(12_345)
    ('999 B', '12.3 kB')
    """
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """A function to call with the bytes that are done; safe across threads."""
    if sys.stderr.isatty():
        from rich import progress as rich

        columns = (
            rich.TextColumn(title), rich.BarColumn(), rich.DownloadColumn(),
            rich.TransferSpeedColumn(), rich.TimeRemainingColumn(),
        )  # fmt: skip
        from rich.console import Console

        with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda size: bar.advance(task, size)
        return
    lock, state = threading.Lock(), {"done": 0, "told": time.monotonic()}

    def advance(size: int) -> None:
        with lock:
            state["done"] += size
            if time.monotonic() - state["told"] < _SECONDS:
                return
            state["told"] = time.monotonic()
            print_line(f"vt: {title}: {in_units(state['done'])} of {in_units(total)}")

    yield advance
