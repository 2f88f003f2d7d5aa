"""What ``vt review`` shows while a preview runs, and with whose eyes it looks for moved jobs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import rich.console

from vertex_training_cli.process import print_utf8
from vertex_training_cli.review import command


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_how_far_a_preview_is(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    class Console:
        def __init__(self, *, stderr: bool) -> None:
            shown.append(stderr)

        @contextmanager
        def status(self, text: str) -> Iterator[Any]:
            shown.append(text)
            yield SimpleNamespace(update=shown.append)

    monkeypatch.setattr(rich.console, "Console", Console)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: is_terminal))
    with command._progress("dev") as on_event:
        on_event(3)
    wanted = [True, "previewing dev", "previewing dev: 3 events"]
    assert shown == (wanted if is_terminal else [])


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_report_can_be_printed_whatever_the_encoding_of_the_output(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # text that is not encoded at all
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, name, io.TextIOWrapper(written, encoding="ascii"))
    print_utf8()
    print("5 \u2192 \ud800", file=getattr(sys, name), flush=True)
    assert written.getvalue() == b"5 \xe2\x86\x92 \\ud800\n"
