"""Output for people: nothing of it is interpreted, and nothing is cut that somebody may copy."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vertex_training.vt.console import console, show_facts, table

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


def test_a_narrow_terminal_cuts_no_id_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    row = ("flash-attn-crypto-training", "SUCCEEDED", "2026-11-22 23:58:21", "6820685496128202158")
    out = StringIO()
    Console(width=60, file=out).print(table("JOB", "STATE", "CREATED", "ID", rows=[row]))
    assert row[3] in out.getvalue()
    assert row[1] in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 60


def test_a_terminal_too_narrow_for_an_id_folds_it_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = StringIO()
    Console(width=20, file=out).print(table("JOB", "ID", rows=[("titanic", "6820685496128202158")]))
    parts = [line[9:].strip() for line in out.getvalue().splitlines()[1:]]
    assert "".join(parts) == "6820685496128202158"
