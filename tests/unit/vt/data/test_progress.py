"""How far a transfer is: in words, as a line now and then, and as a bar on a terminal."""

from __future__ import annotations

import io

import pytest

from vertex_training_cli.data import progress


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345, "12.3 kB"), (999_949, "999.9 kB"),
        (1_000_000, "1.0 MB"), (2_500_000_000, "2.5 GB"), (10**12, "1.0 TB"), (10**15, "1000.0 TB"),
    ],
)  # fmt: skip
def test_bytes_are_told_in_units_of_a_thousand(size: float, text: str) -> None:
    assert progress.in_units(size) == text


def test_without_a_terminal_there_is_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([100.0, 109.9, 110.0, 110.0, 119.9, 125.0, 125.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.progress("to gs://b/x/", 5_000_000) as advance:
        for size in (1_000_000, 500_000, 1_000_000, 2_500_000):
            advance(size)
    assert capsys.readouterr() == (
        "",
        "vt: to gs://b/x/: 1.5 MB of 5.0 MB\nvt: to gs://b/x/: 5.0 MB of 5.0 MB\n",
    )


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    with progress.progress("to gs://b/x/", 7000) as advance:
        advance(2000)
        advance(1500)
    shown = terminal.getvalue()
    assert "to gs://b/x/ " in shown
    assert "3.5/7.0 kB" in shown
    assert shown.endswith("\x1b[1A\x1b[2K")
