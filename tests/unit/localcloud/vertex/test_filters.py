"""The filter of ListCustomJobs."""

from __future__ import annotations

import re

import pytest

from localgcp.errors import FilterError
from localgcp.vertex.filters import Fields, label, parse
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
        ('  labels.request-id = "abc"  ', True),
        ("labels.request-id:*", True), ("labels.other:*", False), ("labels.other=abc", False),
        ("labels.other!=abc", True), ("labels.team!=ml", False),
        ('display_name="titanic one"', True), ('display_name="titanic"', False),
        ("display_name:titanic", True), ('display_name:"*nic o*"', True),
        ("display_name:britannic", False),
        ('state="JOB_STATE_RUNNING"', True), ("state!=JOB_STATE_FAILED", True),
        ("state!=JOB_STATE_RUNNING", False),
        ("NOT state=JOB_STATE_FAILED", True), ("NOT state=JOB_STATE_RUNNING", False),
        ("NOT NOT state=JOB_STATE_RUNNING", True),
        ("-labels.team=web", True), ("-labels.team=ml", False), ("NOT -labels.team=ml", True),
        ("state=JOB_STATE_RUNNING AND labels.team=ml", True),
        ("state=JOB_STATE_RUNNING AND labels.team=web", False),
        ("labels.team=web AND state=JOB_STATE_RUNNING", False),
        ("labels.team=web OR labels.team=ml", True), ("labels.team=web OR labels.team=x", False),
        # OR binds tighter than AND.
        ("labels.team=ml OR state=x AND labels.request-id=x", False),
        ('labels.team=web OR display_name="titanic one" AND labels.team=ml', True),
        ("labels.team=ml OR (state=x AND labels.request-id=x)", True),
        ("(labels.team=web OR labels.team=ml) AND labels.request-id=abc", True),
        ('labels.team:"web","ml"', True), ('labels.team="web", "x" , "ml"', True),
        ('labels.team="web","x"', False), ("labels.team=web,ml", False),
        ('labels.team("ml")', True), ('labels.team("web")', False),
        ('create_time<"2026-11-21T10:00:00.5Z"', False),
        ('create_time="2026-11-21T10:00:00.5Z"', True),
        ('create_time="2026-11-21T10:00:00.500000000Z"', True),
        ('create_time<"2026-11-21T10:00:01Z"', True),
        ('create_time<"2026-11-21T10:00:00Z"', False),
        ('create_time<="2026-11-21T10:00:00.500000Z"', True),
        ('create_time<="2026-11-21T10:00:00.499999Z"', False),
        ('create_time<"2026-11-21T10:00:00.500000Z"', False),
        ('create_time>"2026-11-21T10:00:00Z"', True),
        ('create_time>"2026-11-21T10:00:01Z"', False),
        ('create_time>"2026-11-21T10:00:00.500000Z"', False),
        ('create_time>="2026-11-21T10:00:00.500000+00:00"', True),
        ('create_time>="2026-11-21T10:00:00.500001Z"', False),
        ('update_time="2026-11-21T10:00:01Z"', True),
        ('update_time="2026-11-21T10:00:01+00:00"', True),
        ('update_time>="2026-11-21T10:00:01+00:00"', True),
        ('update_time!="2026-11-21T10:00:01Z"', False),
        ('update_time="2026-11-21T12:00:01+02:00"', True),
        ('create_time>"2026-11-21T11:59:59+02:00"', True),
        ('create_time>"2026-11-21T08:30:00.6-01:30"', False),
        ('create_time<"2026-11-21T09:00:00-01:30" AND end_time:*', False),
        ('end_time>"2020-01-01T00:00:00Z"', False), ('end_time<"2030-01-01T00:00:00Z"', False),
        ('start_time!="2030-01-01T00:00:00Z"', True),
        ("create_time:*", True), ("start_time:*", False), ("NOT end_time:*", True),
        ('create_time:"2026-11-21"', True), ('create_time:"2026-11-22"', False),
        (" OR ".join(["state=x"] * 30) + " OR labels.team=ml", True),
        ("(" * 19 + "labels.team=ml" + ")" * 19, True),
        ("NOT " * 19 + "labels.team=ml", False),
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
        ("labels.a>=b", "at its end"),
        ('labels.a("b"', "at its end"),
        ('labels.a="b",', "at its end"),
        ('labels.a)"b"', "at its end"),
        ('labels.a("b" OR state=A', "near 'OR'"),
        ("state=A)", "near ')'"),
        ("state==A", "near '='"),
        ("state=A B", "near 'B'"),
        ('"state"=A', "near 'state'"),
        ("state A", "near 'A'"),
        ("AND", "unknown field 'AND'"),
        ("colour=red", "unknown field 'colour'"),
        ("-colour=red", "unknown field 'colour'"),
        ("my_state=A", "unknown field 'my_state'"),
        ("labels.=A", "unknown field 'labels.'"),
        ("labelsxa=A", "unknown field 'labelsxa'"),
        ('state="open', "at position 6"),
        ('create_time>"yesterday"', "'yesterday' is no time"),
        ('end_time="2026-11-21"', "'2026-11-21' is no time"),
        ('create_time>="2026-11-21T10:00:00Z","2026-13-01T00:00:00Z"',
         "'2026-13-01T00:00:00Z' is no time"),
        ('state!="A" AND "', "at position 14"),
        ("(" * 20 + "state=A" + ")" * 20, "nested too deeply"),
        ("NOT " * 20 + "state=A", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_broken_filter_is_refused_with_its_text_and_place(text: str, what: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse(text)
    assert str(refused.value) == f"Invalid filter: {text!r}, {what}."


def test_of_a_long_filter_a_refusal_has_two_hundred_characters_of_each_part() -> None:
    cut = "x" * 200

    def refusal(text: str) -> str:
        with pytest.raises(FilterError) as refused:
            parse(text)
        return str(refused.value)

    assert refusal("x" * 201) == f"Invalid filter: '{cut}', unknown field '{cut}'."
    assert refusal(f"state {'x' * 201}") == f"Invalid filter: 'state {'x' * 194}', near '{cut}'."
    assert refusal("x" * 201 + '"') == f"Invalid filter: '{cut}', at position 201."


def test_a_quoted_value_has_what_is_escaped_in_it() -> None:
    asks = parse(r'display_name="a \"b\" \\ c"')
    assert asks(job(display_name=r'a "b" \ c'))
    assert not asks(job(display_name=r"a b \ c"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("of:a", True), ("of:b", True), ("of:c", False), ('of:"c","b"', True),
        ('of:"c","d"', False),
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


def test_a_filter_for_one_label_is_known_as_such_and_no_other() -> None:
    assert (
        label("labels.request-id=abc") == label('labels.request-id="abc"') == ("request-id", "abc")
    )
    others = ("", "state=abc", "labels.a:*", "labels.a!=b", "-labels.a=b", "labels.a=b OR state=c")
    assert {label(text) for text in others} == {None}
