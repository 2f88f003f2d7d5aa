"""Output for people: nothing of it is interpreted, and nothing is cut that somebody may copy."""

from __future__ import annotations

from collections import Counter
from io import StringIO

import pytest
from rich.console import Console

from vertex_training_cli.console import console, show_facts, table

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
    monkeypatch.setenv("COLUMNS", "15")
    out = StringIO()
    Console(width=15, file=out).print(table("JOB", "ID", rows=[("titanic", "6820685496128202158")]))
    parts = [line.strip() for line in out.getvalue().splitlines()[1:]]
    assert "".join(parts) == "titanic6820685496128202158"


ID = "6820685496128202158"
TIME = "2026-11-22 23:58:21"
#: A row of each table of the commands, as long as such rows are.
TABLES = {
    "vt jobs list": (
        ("JOB", "RUN", "STATE", "CREATED", "DURATION", "ID"),
        ("flash-attn-crypto-training", "10", "CANCELLED", TIME, "1 h 02 min", ID),
    ),
    "vt jobs list, short": (
        ("JOB", "RUN", "STATE", "CREATED", "DURATION", "ID"),
        ("titanic", "1", "SUCCEEDED", TIME, "20 s", ID),
    ),
    "vt jobs show of a tuning job": (
        ("TRIAL", "STATE", "accuracy", "loss", "learning_rate", "optimizer", "ID"),
        ("12", "SUCCEEDED", "0.912345", "0.12345", "0.000123", "adam", ID),
    ),
    "vt local status": (
        ("JOB", "ID", "STATE", "CREATED", "ERROR"),
        ("flash-attn-crypto-training", ID, "SUCCEEDED", TIME, "The replica exited with 1."),
    ),
    "vt local status, tuning": (
        ("TUNING JOB", "ID", "STATE", "TRIALS", "ERROR"),
        ("titanic-search", ID, "SUCCEEDED", "12 of 12", ""),
    ),
    "vt local fault list": (
        ("ID", "FAULT", "HAPPENED", "HOLDS NOW"),
        ("f1", "preempt at step 3 of job flash-attn-crypto-training", "2 of 3", "CreateCustomJob"),
    ),
}


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(("columns", "row"), TABLES.values(), ids=TABLES)
def test_every_table_fits_with_its_ids_whole_and_loses_nothing(monkeypatch, columns, row, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = StringIO()
    Console(width=width, file=out).print(table(*columns, rows=[row, row]))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(ID in line for line in lines) == (2 if ID in row else 0)
    shown = Counter(character for line in lines for character in line if character.strip())
    wanted = Counter("".join((*columns, *row, *row)).replace(" ", ""))
    assert shown - wanted in (Counter(), Counter(","))  # a heading of two names
    assert not wanted - shown


@pytest.mark.parametrize("row", [("a",), ("a", "b", "c")])
def test_a_row_has_a_cell_for_each_column(row: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        table("A", "B", rows=[("a", "b"), row])
