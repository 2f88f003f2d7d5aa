"""Progress of builds for people: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from vertex_training_cli.console import plain
from vertex_training_cli.status import print_line

#: Characters of a log line that are shown on the changing line.
_SHOWN: Final = 100


class Progress(Protocol):
    """Where lines about a build go."""

    def report(self, line: str) -> None:
        """Take a line for a person, which stays."""
        ...

    def write_log(self, line: str) -> None:
        """Take a line of the engine's log."""
        ...


class PlainProgress:
    """Lines on stderr; the log only where it was asked for."""

    def __init__(self, *, with_log: bool) -> None:
        self._with_log = with_log

    def report(self, line: str) -> None:
        """See ``Progress``."""
        print_line(f"vt: {line}")

    def write_log(self, line: str) -> None:
        """See ``Progress``."""
        if self._with_log:
            print_line(plain(line))


@contextmanager
def progress(*, with_log: bool) -> Iterator[Progress]:
    """The progress of a command. On a terminal, the newest line of the log is shown."""
    if with_log or not sys.stderr.isatty():
        yield PlainProgress(with_log=with_log)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with console.status("") as status:

        class Terminal(PlainProgress):
            """The changing line."""

            def report(self, line: str) -> None:
                console.print(f"vt: {plain(line)}")
                status.update(plain(line))

            def write_log(self, line: str) -> None:
                from rich.text import Text

                status.update(Text(plain(line)[:_SHOWN], style="dim"))

        yield Terminal(with_log=False)
