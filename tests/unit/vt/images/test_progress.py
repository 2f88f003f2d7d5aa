"""Progress of builds: plain lines, or on a terminal one line that changes."""

from __future__ import annotations

import io
import sys
import time

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


def test_a_terminal_shows_reports_and_the_newest_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress(with_log=False) as shown:
        shown.report("building\x1b [bold]a")
        time.sleep(0.3)
        shown.write_log("step\x1b 1" + "x" * 101)
        time.sleep(0.3)
    lines = terminal.getvalue()
    assert "vt: building\ufffd [bold]a\n" in lines
    assert f"\x1b[2mstep\ufffd 1{'x' * 93}\x1b[0m" in lines
    assert "x" * 94 not in lines
