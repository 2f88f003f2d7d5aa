"""Output for people: nothing of it is interpreted, and nothing is cut that somebody may copy."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vertex_training_cli.console import console, show_facts, table


def test_brackets_and_colons_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(table("A", rows=[("[/x] [red] :smile:",)]))
    show_facts(console(), ("JOB", "[x]"), [("error", "[/x] [red] :smile:")])
    assert capsys.readouterr().out.split("\n")[1:4] == [
        "[/x] [red] :smile:", "JOB    [x]", "error  [/x] [red] :smile:",
    ]  # fmt: skip


def test_a_terminal_too_narrow_for_an_id_folds_it_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "15")
    out = StringIO()
    Console(width=15, file=out).print(table("JOB", "ID", rows=[("titanic", "6820685496128202158")]))
    parts = [line.strip() for line in out.getvalue().splitlines()[1:]]
    assert "".join(parts) == "titanic6820685496128202158"


ID = "6820685496128202158"


@pytest.mark.parametrize("row", [("a",), ("a", "b", "c")])
def test_a_row_has_a_cell_for_each_column(row: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        table("A", "B", rows=[("a", "b"), row])
