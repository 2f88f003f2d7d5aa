"""Output for people: nothing of it is interpreted, and nothing is cut that somebody may copy."""

from __future__ import annotations

import pytest

from vt.console import console, show_facts, table

LONG = "gs://bucket/" + "x" * 300


def test_brackets_and_colons_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(table("A", rows=[("[/x] [red] :smile:",)]))
    show_facts(console(), ("JOB", "[x]"), [("error", "[/x] [red] :smile:")])
    assert capsys.readouterr().out.split("\n")[1:4] == [
        "[/x] [red] :smile:", "JOB    [x]", "error  [/x] [red] :smile:",
    ]  # fmt: skip


def test_a_long_value_stays_in_one_piece(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    console().print(table("A", "B", rows=[(LONG, "b")]))
    assert f"{LONG}  b\n" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    show_facts(console(), ("JOB", "x"), [("artifacts", LONG), ("", "and more")])
    told = capsys.readouterr().out
    assert f"artifacts  {LONG}\n{' ' * 11}and more\n" in told
