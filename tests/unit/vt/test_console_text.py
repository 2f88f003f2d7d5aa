"""Text of others on a terminal and in JSON, and the whole text of facts and tables."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vertex_training_cli.console import (
    console,
    is_seen,
    json_document,
    json_text,
    plain,
    plain_lines,
    show_facts,
    table,
)

MARK = "\N{REPLACEMENT CHARACTER}"
NUMBERS = {"a": [float("nan"), float("inf")], "b": {"c": (float("-inf"), 1.5, 2)}, "d": None}


@pytest.mark.parametrize(
    ("char", "seen"),
    [
        ("a", True),
        (" ", True),
        ("é", True),
        ("\N{SNOWMAN}", True),
        ("\t", False),
        ("\x1b", False),
        ("\u202e", False),  # turns what follows from right to left
        ("\N{HANGUL FILLER}", False),
        ("\N{BRAILLE PATTERN BLANK}", False),
        ("\N{MUSICAL SYMBOL NULL NOTEHEAD}", False),
        ("\N{VARIATION SELECTOR-1}", False),
        ("\N{COMBINING GRAPHEME JOINER}", False),
        ("\N{KHMER VOWEL INHERENT AQ}", False),
    ],
)
def test_a_character_is_seen_or_does_something_else(char: str, seen: bool) -> None:
    assert is_seen(char) is seen
    assert plain(f"<{char}>") == f"<{char if seen else ' ' if char == chr(9) else MARK}>"


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


def test_the_first_fact_is_bold_and_keys_are_as_wide_as_the_widest() -> None:
    made, out = terminal(20)
    rows = [
        ("artifacts", "gs://bucket/" + "x" * 30),
        ("b", "1\n\x1b2"),
        ("c", "password=hunter2hunter2"),
    ]
    show_facts(made, ("JOB", "train"), rows)
    assert out.getvalue() == (
        "\x1b[1mJOB        train\x1b[0m\n"
        f"artifacts  gs://bucket/{'x' * 30}\n"
        f"b          1\n{MARK}2\n"
        "c          password=[secret]\n"
    )


def test_a_table_has_no_frame_and_its_title_is_bold_at_the_left() -> None:
    made, out = terminal()
    made.print(table("JOB", "STATE\x07", rows=[("train\x1b", "1\n2"), ("b", "x")], title="Jobs"))
    bold, end = "\x1b[1m", "\x1b[0m"
    assert out.getvalue() == (
        f"{bold}Jobs          {end}\n"
        f"{bold}JOB   {end}{bold} {end}{bold} {end}{bold}STATE{MARK}{end}\n"
        f"train{MARK}  1     \n        2     \nb       x     \n"
    )


def printed(width: int, *columns: str, rows: list[tuple[str, ...]]) -> list[str]:
    out = StringIO()
    Console(width=width, file=out).print(table(*columns, rows=rows))
    return [line.rstrip() for line in out.getvalue().splitlines()]


#: Whole words of 9 and 10 characters, 8 for each of the others and two between columns: 41.
SHOWN = {
    41: [
        "JOB        STATE      CREATED  ID",
        "short      SUCCEEDED  2026-11  1234567890",
        "                      -22",
        "                      23:58",
        "a name of  FAILED     2026-11  22",
        "words                 -22",
        "                      23:59",
    ],
    40: [
        "JOB, ID     STATE      CREATED",
        "short       SUCCEEDED  2026-11-22 23:58",
        "1234567890",
        "a name of   FAILED     2026-11-22 23:59",
        "words",
        "22",
    ],
    20: [
        "JOB,           CREAT",
        "ID      STATE  ED",
        "short   SUCCE  2026-",
        "123456  EDED   11-22",
        "7890",
        "               23:58",
        "a name  FAILE  2026-",
        "of      D      11-22",
        "words",
        "22             23:59",
    ],
}


@pytest.mark.parametrize("width", SHOWN)
def test_where_there_is_no_room_the_id_stands_below_the_name(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [
        ("short", "SUCCEEDED", "2026-11-22 23:58", "1234567890"),
        ("a name of words", "FAILED", "2026-11-22 23:59", "22"),
    ]
    assert printed(width, "JOB", "STATE", "CREATED", "ID", rows=rows) == SHOWN[width]


def test_a_console_folds_nothing_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert console().width == 10_000
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert console().width == 70
    console().print("[b] :smile: 12 'x'")
    assert capsys.readouterr().out == "[b] :smile: 12 'x'\n"


def test_a_table_without_rows_is_its_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert printed(80, "JOB", "ID", rows=[]) == ["JOB  ID"]
    monkeypatch.setenv("COLUMNS", "3")
    assert printed(3, "JOB", "ID", rows=[]) == ["JOB", ",", "ID"]


@pytest.mark.parametrize(
    ("word", "lines"),
    [
        ("x" * 20, ["A                     B", "x" * 20 + "  some", " " * 22 + "words"]),
        ("x" * 21, ["A                   B", "x" * 18 + "  some words", "xxx"]),
    ],
)
def test_a_word_of_20_characters_is_kept_whole_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, word: str, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert printed(30, "A", "B", rows=[(word, "some words")]) == lines
