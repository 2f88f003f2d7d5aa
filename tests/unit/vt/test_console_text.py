"""Text of others on a terminal and in JSON, and the whole text of facts and tables."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vertex_training_cli.console import (
    json_document,
    json_text,
    plain,
    plain_lines,
    table,
)

MARK = "\N{REPLACEMENT CHARACTER}"
NUMBERS = {"a": [float("nan"), float("inf")], "b": {"c": (float("-inf"), 1.5, 2)}, "d": None}


def test_lines_end_where_they_did_and_nothing_else_acts() -> None:
    text = "a\tb\r\n\x1b[31mc\x07\n"
    assert plain_lines(text) == f"a b{MARK}\n{MARK}[31mc{MARK}\n"
    assert plain(text) == f"a b{MARK}{MARK}{MARK}[31mc{MARK}{MARK}"


def test_json_on_a_line_escapes_what_acts_and_keeps_letters() -> None:
    value = {"é": "a\tb\n\x1b\u202e\N{HANGUL FILLER}", "n": NUMBERS}
    assert json_text(value) == (
        '{"é": "a\\tb\\n\\u001b\\u202e\\u3164", "n": {"a": ["NaN", "Infinity"], '
        '"b": {"c": ["-Infinity", 1.5, 2]}, "d": null}}'
    )


def test_a_document_has_an_item_a_line_and_is_ascii() -> None:
    assert json_document({"é": NUMBERS["a"], "x": {"y": True}}) == (
        '{\n  "\\u00e9": [\n    "NaN",\n    "Infinity"\n  ],\n  "x": {\n    "y": true\n  }\n}'
    )


def terminal(width: int = 80) -> tuple[Console, StringIO]:
    out = StringIO()
    options = {
        "force_terminal": True,
        "color_system": "standard",
        "highlight": False,
        "markup": False,
    }
    return Console(width=width, file=out, **options), out


def printed(width: int, *columns: str, rows: list[tuple[str, ...]]) -> list[str]:
    out = StringIO()
    Console(width=width, file=out).print(table(*columns, rows=rows))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_table_without_rows_is_its_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert printed(80, "JOB", "ID", rows=[]) == ["JOB  ID"]
    monkeypatch.setenv("COLUMNS", "3")
    assert printed(3, "JOB", "ID", rows=[]) == ["JOB", ",", "ID"]
