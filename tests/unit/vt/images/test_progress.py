"""Progress of builds: plain lines, or on a terminal one line that changes."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vertex_training_cli.images.progress import progress


def write(*, with_log: bool) -> None:
    with progress(with_log=with_log) as shown:
        shown.report("building [bold]a[/bold]")
        shown.write_log("step\x1b 1")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_that_is_asked_for_is_whole_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    write(with_log=True)
    assert sys.stderr.getvalue() == "vt: building [bold]a[/bold]\nstep\ufffd 1\n"


class Console:
    """In place of rich's: notes what is done with it."""

    def __init__(self, **given: Any) -> None:
        self.done.append(given)

    done: list[Any]

    def print(self, text: str) -> None:
        self.done.append(("print", text))

    def update(self, text: Any) -> None:
        self.done.append(("update", str(text), getattr(text, "style", "")))

    @contextmanager
    def status(self, text: str) -> Iterator[Console]:
        self.done.append(("begin", text))
        yield self
        self.done.append("end")


def test_a_terminal_has_the_newest_line_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("rich.console.Console", Console)
    Console.done = []
    with progress(with_log=False) as shown:
        shown.report("building\x1b a")
        shown.write_log("step\x1b 1")
        shown.write_log("x" * 101)
    assert Console.done == [
        {"stderr": True, "highlight": False, "markup": False, "emoji": False},
        ("begin", ""),
        ("print", "vt: building\ufffd a"),
        ("update", "building\ufffd a", ""),
        ("update", "step\ufffd 1", "dim"),
        ("update", "x" * 100, "dim"),
        "end",
    ]
    assert sys.stderr.getvalue() == ""
