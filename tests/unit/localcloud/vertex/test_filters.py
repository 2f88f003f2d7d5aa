"""The filter of ListCustomJobs."""

from __future__ import annotations

import re

import pytest

from localgcp.errors import FilterError
from localgcp.vertex.filters import Fields, parse
from localgcp.vertex.records import JobRecord, JobState


def job(**changes: object) -> JobRecord:
    values: dict[str, object] = {
        "job_id": "1", "project": "local-x", "number": "1", "region": "us-central1",
        "display_name": "titanic one", "labels": {"request-id": "abc", "team": "ml"},
        "request": {}, "state": JobState.RUNNING, "create_time": "2026-11-21T10:00:00.500000Z",
        "start_time": None, "end_time": None, "update_time": "2026-11-21T10:00:01.000000Z",
        "error_code": None, "error_message": None,
    }  # fmt: skip
    return JobRecord(**{**values, **changes})  # pyright: ignore[reportArgumentType]


# The job's times end in .500000Z (creation) and .000000Z (update); it has no start.
@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", True), ("  ", True),
        ("labels.request-id=abc", True), ("labels.request-id=abd", False),
        ("labels.request-id:*", True), ("labels.other:*", False), ("labels.other=abc", False),
        ("labels.other!=abc", True), ("labels.team!=ml", False),
        ('display_name="titanic one"', True), ('display_name="titanic"', False),
        ("display_name:titanic", True), ('display_name:"*nic o*"', True),
        ('state="JOB_STATE_RUNNING"', True), ("state!=JOB_STATE_FAILED", True),
        ("NOT state=JOB_STATE_FAILED", True), ("NOT state=JOB_STATE_RUNNING", False),
        ("-labels.team=web", True), ("-labels.team=ml", False), ("NOT -labels.team=ml", True),
        ("labels.team=web OR labels.team=ml", True), ("labels.team=web OR labels.team=x", False),
        # OR binds tighter than AND.
        ("labels.team=ml OR (state=x AND labels.request-id=x)", True),
        ('labels.team:"web","ml"', True), ('labels.team="web", "x" , "ml"', True),
        ('labels.team="web","x"', False), ("labels.team=web,ml", False),
        ('labels.team("ml")', True), ('labels.team("web")', False),
        ('create_time<"2026-11-21T09:00:00-01:30" AND end_time:*', False),
        ('end_time>"2020-01-01T00:00:00Z"', False), ('end_time<"2030-01-01T00:00:00Z"', False),
        ("create_time:*", True), ("start_time:*", False), ("NOT end_time:*", True),
        ('create_time:"2026-11-21"', True), ('create_time:"2026-11-22"', False),
    ],
)  # fmt: skip
def test_a_filter_lets_what_it_asks_for_pass(text: str, passes: bool) -> None:
    assert parse(text)(job()) is passes


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("state", "at its end"),
        ("state=", "at its end"),
        ("state=A AND", "at its end"),
        ("(state=A", "at its end"),
        ("labels.a<b", "at its end"),
        ('labels.a="b",', "at its end"),
        ("state=A)", "near ')'"),
        ("AND", "unknown field 'AND'"),
        ('state="open', "at position 6"),
        ('create_time>="2026-11-21T10:00:00Z","2026-13-01T00:00:00Z"',
         "'2026-13-01T00:00:00Z' is no time"),
        ("(" * 20 + "state=A" + ")" * 20, "nested too deeply"),
        ("NOT " * 20 + "state=A", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_broken_filter_is_refused_with_its_text_and_place(text: str, what: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse(text)
    assert str(refused.value) == f"Invalid filter: {text!r}, {what}."


def test_a_quoted_value_has_what_is_escaped_in_it() -> None:
    asks = parse(r'display_name="a \"b\" \\ c"')
    assert asks(job(display_name=r'a "b" \ c'))
    assert not asks(job(display_name=r"a b \ c"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("of:a", True), ("of:b", True), ("of:c", False), ('of:"c","b"', True),
        ('of("a")', True), ('of("c", "a")', True), ('of("c")', False),
        ("of=a", False), ("of!=a", True), ("of:*", True), ("none:*", False), ("none:a", False),
    ],
)  # fmt: skip
def test_a_list_is_asked_for_its_members(text: str, passes: bool) -> None:
    lists = {"of": ["a", "b"], "none": []}
    fields = Fields(re.compile("of|none"), lambda item, field: item[field])
    assert parse(text, fields)(lists) is passes


@pytest.mark.parametrize("text", ["(" * 5_000, "NOT " * 5_000, "(" * 30 + "state=X" + ")" * 30])
def test_a_filter_that_is_nested_too_deeply_is_refused_in_short(text: str) -> None:
    with pytest.raises(FilterError, match="nested too deeply") as refused:
        parse(text)
    assert len(str(refused.value)) < 300
