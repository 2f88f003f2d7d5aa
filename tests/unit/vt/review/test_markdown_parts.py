"""Each part of a report in Markdown, line by line, and how it is shortened to fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.headline import HeadlineAnswer
from vertex_training_cli.review.markdown import LEVELS, Verbosity
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
from vertex_training_cli.review.picture import Graph, Node

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


def entries(*texts: str) -> tuple[Entry, ...]:
    return tuple(Entry(text) for text in texts)


def items(*texts: str) -> list[str]:
    return [f"- {text}" for text in texts]


ROWS: Final = tuple(Row(((number,), ("x", "y"))) for number in NUMBERS)
TABLE: Final = Table("caption", ("a", "b"), ROWS[:2])
LINES: Final = ["| a | b |", "|---|---|", "| 0 | x<br>y |", "| 1 | x<br>y |"]
FEWER: Final = Table(
    "caption", ("a", "b"), ROWS,
    shorter=(Listing((entries("one"), entries("never"))), Listing((entries(*NUMBERS),))),
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (Paragraph("words"), ["words", ""]),
        (Paragraph("w: ", ("a", "b"), "."), ["w: a, b.", ""]),
        (Paragraph("w: ", ("a", "b"), by_semicolon=True), ["w: a; b", ""]),
        (Paragraph("", NUMBERS[:20]), [", ".join(NUMBERS[:20]), ""]),
        (Paragraph("", NUMBERS[:21]), [f"{', '.join(NUMBERS[:20])}, and 1 more", ""]),
        (Paragraph("", NUMBERS, "!"), [", ".join(NUMBERS[:20]) + ", and 2 more!", ""]),
        (Verbatim(("a", "b")), ["```text", "a", "b", "```", ""]),
        (Verbatim(NUMBERS), ["```text", *NUMBERS[:20], "and 2 more", "```", ""]),
        (Listing((entries("a"), entries("b"))), ["- a", "- b", ""]),
        (Listing((entries(*NUMBERS[:20]),)), [*items(*NUMBERS[:20]), ""]),
        (Listing((entries(*NUMBERS), entries(*NUMBERS[:21]))), [
            *items(*NUMBERS[:20], "and 2 more"), *items(*NUMBERS[:20], "and 1 more"), ""]),
        (Listing((entries(*NUMBERS[:3]),), minor=True), [*items(*NUMBERS[:3]), ""]),
        (Listing((entries(*NUMBERS[:4]),), minor=True), [
            *items(*NUMBERS[:3], "and 1 more"), ""]),
        (Listing(((Entry("t", "lead", note="n", fields=FIELDS[:2]),),)), [
            "- **lead** t", "  - `a`: `1` → `2`", "  - `b`: (absent) → `x`", "  - n", ""]),
        (Listing(((Entry("t", fields=FIELDS),),)), [
            "- t", "  - `a`: `1` → `2`", "  - `b`: (absent) → `x`", "  - and 1 more fields", ""]),
        (Listing(((Entry("t", fields=FIELDS, in_comment=False),),)), ["- t", ""]),
        (TABLE, [*LINES, ""]),
        (dataclasses.replace(TABLE, spaced=True), [*LINES, "", ""]),
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


def test_a_table_of_many_rows_is_cut_unless_it_has_something_shorter(shown: Shown) -> None:
    cut = shown(never(Table("caption", ("a", "b"), ROWS)))
    assert cut[:4] == ["### T", "", *LINES[:2]]
    assert cut[-4:] == ["| 19 | x<br>y |", "", "- and 2 more", ""]
    rows = [f"| {number} | x<br>y |" for number in NUMBERS]
    assert shown(never(FEWER)) == ["### T", "", *LINES[:2], *rows, ""]


@pytest.mark.parametrize(
    ("shorter", "lines"), [(1, ["- one", ""]), (2, [*items(*NUMBERS), ""])], ids=str
)
def test_of_a_table_of_jobs_a_short_comment_has_all_in_fewer_words(
    shown: Shown, shorter: int, lines: list[str]
) -> None:
    at = dataclasses.replace(SHORT, shorter=shorter)
    assert shown(never(FEWER), at=at) == ["### T", "", *lines]
    assert shown(never(TABLE), at=at) == ["### T", "", *LINES, ""]


def test_without_room_for_fields_none_is_shown_or_counted(shown: Shown) -> None:
    at = dataclasses.replace(SHORT, fields=0)
    entry = Listing(((Entry("t", fields=FIELDS, note="n"),),))
    found = shown(never(Differences("two", FIELDS), entry), at=at)
    assert found == ["### T", "", "- t", "  - n", ""]


@pytest.mark.parametrize(
    ("section", "lines"),
    [
        (ReportSection("", (Paragraph("a"),)), ["a", ""]),
        (ReportSection("T", ()), ["### T", ""]),
        (ReportSection("T", (), fold="comment"), []),
        (ReportSection("T", (Paragraph("a"),), fold="comment"), [
            "<details><summary>T</summary>", "", "a", "", "</details>", ""]),
        (ReportSection("T", (Paragraph("a"),), Paragraph("", ("1", "2")), "always"), [
            "<details><summary>T: 1, 2</summary>", "", "a", "", "</details>", ""]),
    ],
)  # fmt: skip
def test_a_section_is_open_or_folded_and_without_parts_not_there(
    shown: Shown, section: ReportSection, lines: list[str]
) -> None:
    assert shown(section) == lines


def test_a_report_is_shortened_step_by_step() -> None:
    assert [dataclasses.astuple(level) for level in LEVELS] == [
        (200, 1000, True, 0),
        (20, 200, True, 0),
        (5, 40, True, 0),
        (0, 20, False, 0),
        (0, 0, False, 1),
        (0, 0, False, 2),
    ]
    assert [level.items for level in LEVELS] == [1000, 200, 40, 20, 20, 20]


def test_the_first_step_that_fits_is_taken_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    part: Any = Listing((entries(*(f"é{number}" for number in range(300))),))
    monkeypatch.setattr(markdown, "sections", lambda *_: [never(part)])
    whole = markdown.render(EMPTY)
    size = len(whole.encode())
    assert size > len(whole)  # bytes count, not characters
    assert markdown.render(EMPTY, size) == whole
    told = "Shortened to fit into a comment; `--format html` and `--format json` have all of it."
    assert told not in whole
    less = markdown.render(EMPTY, size - 1)
    assert less.splitlines()[-4:-1] == ["", told, ""]
    assert "- and 100 more" in less.splitlines()
    room = len(less.encode())
    shown = {
        more for limit in range(700, room, 40) if (more := _left(markdown.render(EMPTY, limit)))
    }
    assert shown == {"- and 260 more", "- and 280 more"}


def _left(text: str) -> str:
    """How many entries a report leaves out, in its words; empty if it was cut."""
    return next((line for line in text.splitlines() if line.startswith("- and ")), "")


def test_what_fits_in_no_way_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Verbatim(("x" * 50,) * 20)
    monkeypatch.setattr(markdown, "sections", lambda *_: [never(part)])
    text = markdown.render(EMPTY, 1300)
    *head, empty, last = text.splitlines()
    assert (empty, last) == ("", "The rest does not fit; see `--format html`.")
    assert text.endswith("`.\n")
    assert text.startswith(HEAD)
    assert head[-1] == "x" * 50
    assert 1300 - 100 - 51 < len("\n".join(head)) <= 1300 - 100


def test_the_last_line_says_where_and_which_plan() -> None:
    place = dataclasses.replace(EMPTY, digest="0" * 64)
    nowhere = dataclasses.replace(place, project="")
    plan = f"Plan `{'0' * 64}`</sub>"
    assert markdown.render(place).splitlines()[-1] == (
        f"<sub>project `acme-ml-dev`, `us-central1`; here. {plan}"
    )
    assert markdown.render(nowhere).splitlines()[-1] == f"<sub>here. {plan}"


def test_values_are_code_and_strong_words_are_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(_: Any, quote: Callable[[str], str], strong: Callable[[str], str]) -> list[Any]:
        return [never(Paragraph(f"{strong('lost')}: {quote('a')}"))]

    monkeypatch.setattr(markdown, "sections", said)
    assert "### T\n\n**lost**: `a`\n\n<sub>" in markdown.render(EMPTY)


REST: Final = "\n\nThe rest does not fit; see `--format html`.\n"


def test_a_report_fits_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 0
    monkeypatch.setattr(markdown, "sections", lambda *_: [never(Paragraph("x" * length))])
    length = 64_000 - len(markdown.render(EMPTY).encode())
    whole = markdown.render(EMPTY)
    assert (len(whole.encode()), "x" * length in whole) == (64_000, True)
    length += 1
    assert markdown.render(EMPTY).endswith(REST)
    assert markdown.render(EMPTY, 64_001) == whole.replace("x" * (length - 1), "x" * length)


def test_what_does_not_fit_ends_with_a_whole_line_and_whole_characters() -> None:
    # 100 bytes of 200 are left; the last line that fits is the head of the table.
    head = HEAD.partition("| what policies say")[0].removesuffix("\n")
    assert markdown.render(EMPTY, 200) == f"{head}{REST}"
    accents = dataclasses.replace(EMPTY, stack="é" * 40)
    for limit in (130, 131):
        assert markdown.render(accents, limit) == REST


def test_a_picture_is_drawn_or_left_out(shown: Shown) -> None:
    graph = Graph()
    graph.add(Node("job", "a"), Node("account", "x"), "runs as", new=False)
    drawn = [
        "```mermaid", "flowchart LR", '  n0["job a"]', '  n1(["account x"])',
        '  n0 -- "runs as" --> n1', "```",
    ]  # fmt: skip
    assert shown(never(graph))[2:] == drawn
    assert shown(never(graph), at=dataclasses.replace(SHORT, draw=False))[2:] == []


def test_without_an_open_question_there_is_no_line_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(markdown, "answers", lambda *_: [HeadlineAnswer("q", ("a", "b"))])
    monkeypatch.setattr(markdown, "sections", lambda *_: [])
    lines = markdown.render(EMPTY).splitlines()
    assert lines[4:8] == ["| question | answer |", "|---|---|", "| q | a; b |", ""]
    assert lines[8].startswith("<sub>")
