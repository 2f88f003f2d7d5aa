"""Each part of a report in Markdown, line by line, and how it is shortened to fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.headline import HeadlineAnswer
from vertex_training_cli.review.markdown import Verbosity
from vertex_training_cli.review.parts import (
    Differences,
    Entry,
    Fold,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Row,
    Table,
    Verbatim,
)

EMPTY: Final = report.build(plans.plan(), source="here")
HEAD: Final = """\
## Review of stack `dev`

**Nothing changes.**

| question | answer |
|---|---|
| what policies say | no policy pack checked this |
"""
SHORT: Final = Verbosity(fields=2, others=3, draw=True)
NUMBERS: Final = tuple(str(number) for number in range(22))
FIELDS: Final = tuple(
    FieldDifference(path, old, new)
    for path, old, new in (("a", "1", "2"), ("b", None, "x"), ("c", "y", None))
)

Shown = Callable[..., list[str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The lines of a report's sections at one verbosity."""

    def lines(*found: ReportSection, at: Verbosity = SHORT) -> list[str]:
        monkeypatch.setattr(markdown, "sections", lambda *_: list(found))
        monkeypatch.setattr(markdown, "LEVELS", (at,))
        text = markdown.render(EMPTY)
        assert text.startswith(HEAD)
        body = text.partition("what was not looked at.\n\n")[2]
        return body.rpartition("<sub>")[0].splitlines()

    return lines


def never(*parts: Part) -> ReportSection:
    return ReportSection("T", parts)


ROWS: Final = tuple(Row(((number,), ("x", "y"))) for number in NUMBERS)
TABLE: Final = Table("caption", ("a", "b"), ROWS[:2])
LINES: Final = ["| a | b |", "|---|---|", "| 0 | x<br>y |", "| 1 | x<br>y |"]


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (Verbatim(("a", "b")), ["```text", "a", "b", "```", ""]),
        (Listing(((Entry("t", "lead", note="n", fields=FIELDS[:2]),),)), [
            "- **lead** t", "  - `a`: `1` → `2`", "  - `b`: (absent) → `x`", "  - n", ""]),
        (Listing(((Entry("t", fields=FIELDS),),)), [
            "- t", "  - `a`: `1` → `2`", "  - `b`: (absent) → `x`", "  - and 1 more fields", ""]),
        (Listing(((Entry("t", fields=FIELDS, in_comment=False),),)), ["- t", ""]),
        (TABLE, [*LINES, ""]),
        (Differences("two", (FIELDS[0], FIELDS[2])), [
            "<details><summary>two</summary>", "", "- `a`: `1` → `2`", "- `c`: `y` → (absent)", "",
            "</details>", ""]),
        (Fold("more", (Paragraph("a"), Paragraph("b"))), [
            "<details><summary>more</summary>", "", "a", "", "b", "", "</details>", ""]),
        (Fold("more", (Paragraph("a"),), comment="see the page"), ["see the page", ""]),
    ],
)  # fmt: skip
def test_a_part_is_these_lines(shown: Shown, part: Part, lines: list[str]) -> None:
    assert shown(never(part)) == ["### T", "", *lines]


def test_without_room_for_fields_none_is_shown_or_counted(shown: Shown) -> None:
    at = dataclasses.replace(SHORT, fields=0)
    entry = Listing(((Entry("t", fields=FIELDS, note="n"),),))
    found = shown(never(Differences("two", FIELDS), entry), at=at)
    assert found == ["### T", "", "- t", "  - n", ""]


def test_without_an_open_question_there_is_no_line_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(markdown, "answers", lambda *_: [HeadlineAnswer("q", ("a", "b"))])
    monkeypatch.setattr(markdown, "sections", lambda *_: [])
    lines = markdown.render(EMPTY).splitlines()
    assert lines[4:8] == ["| question | answer |", "|---|---|", "| q | a; b |", ""]
    assert lines[8].startswith("<sub>")
