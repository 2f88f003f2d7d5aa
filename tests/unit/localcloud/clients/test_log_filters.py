"""Filters of Cloud Logging, as gcloud and this project write them."""

from __future__ import annotations

import pytest

from localgcp.clients.log_filters import parse, parse_time
from localgcp.errors import FilterError

KNOWN = ("a", "b", "timestamp", "insertId")
ENTRY = {"a": "1", "b": "Text", "timestamp": "2026-11-22T10:00:00.500000+00:00", "insertId": "i5"}
#: How a value compares to itself.
ORDER = {">": False, ">=": True, "<": False, "<=": True}
TIME = "2026-11-22T10:00:00.500000Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ('a="1"', True),
        ("a=1", True),
        ('a="1" AND b="x"', False),
        ('a="1"\nb="Text"', True),
        ('a="2" OR b="Text"', True),
        ('a="2" OR b="Text" AND a="3"', False),
        ('(a="2" OR b="Text") AND a="1"', True),
        ('NOT a="1"', False),
        ('b:"ex"', True),
        ('a!="1"', False),
        ('timestamp>="1970-01-01T01:00:00.000000000Z" AND timestamp<"2100-01-01T00:00:00Z"', True),
        (f'timestamp>"{TIME}"', False),
        ('timestamp>="2026-11-22T11:00:00.500000+01:00"', True),
        (f'((timestamp="{TIME}" AND insertId>"i4") OR timestamp>"{TIME}")', True),
        (f'((timestamp="{TIME}" AND insertId>"i5") OR timestamp>"{TIME}")', False),
        ('a="2" OR a="3" OR b="Text"', True),
        ('NOT NOT a="1"', True),
        ('NOT (a="1" AND b="x")', True),
        ('a="1" NOT b="x"', True),
        ('a="1" (b="x" OR b="Text")', True),
        ('b:"TEXT"', True),
        ('b:"texts"', False),
        ('a!="2"', True),
        *((f'insertId{sign}"i5"', wanted) for sign, wanted in ORDER.items()),
        *((f'timestamp{sign}"{TIME}"', wanted) for sign, wanted in ORDER.items()),
        (f'timestamp!="{TIME}"', False),
        ('timestamp="2026-11-22T10:00:00.5000009Z"', True),
        ('timestamp="2026-11-22T10:00:00.5"', True),
        ('timestamp="2026-11-22T10:00:00Z"', False),
        ('timestamp="2026-11-22T08:30:00.5-01:30"', True),
    ],
)
def test_an_entry_fits_or_not(text: str, expected: bool) -> None:
    assert parse(text, KNOWN).test(ENTRY.__getitem__) is expected


def test_only_what_holds_for_every_entry_counts_as_given() -> None:
    assert parse('a="1" AND b="2" AND timestamp>="2026-01-01T00:00:00Z"', KNOWN).equal == {
        "a": "1",
        "b": "2",
    }
    assert parse('a="1" OR b="2"', KNOWN).equal == {}
    assert parse('NOT a="1"', KNOWN).equal == {}
    assert parse('(a="1") AND (b="2" OR b="3")', KNOWN).equal == {"a": "1"}


@pytest.mark.parametrize(
    "text",
    ["a", "a=",  '="1"', 'c="1"', "(", '(a="1"', 'a="1")', 'a="1" AND', 'a="open',
     "timestamp>=now", 'timestamp:"2026"', "(" * 5000, "NOT " * 5000, 'a=~"x"',
     'timestamp>="9999-99-99T99:99:99Z"'],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text, KNOWN)


def test_a_quoted_value_may_have_any_character() -> None:
    text = r'b="say \"hi\" (AND) \\ =x"'
    assert parse(text, KNOWN).equal == {"b": r'say "hi" (AND) \ =x'}
    assert parse('b="NOT" AND a=x-1/y', KNOWN).equal == {"b": "NOT", "a": "x-1/y"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('c="1"', "Unparseable filter: 'c' (the local cloud knows few)."),
        ('a="1")', "Unparseable filter: 'a=\"1\")' (the local cloud knows few)."),
        ('a="open', "Unparseable filter: '\"open'."),
        ('(a="1"', "Unparseable filter: a parenthesis is open."),
        ('a=~"x"', "Unparseable filter: the local cloud knows no regular expressions."),
        ('a!~"x"', "Unparseable filter: the local cloud knows no regular expressions."),
        ("a=", "Unparseable filter: a comparison is FIELD SIGN VALUE."),
        ("a b", "Unparseable filter: a comparison is FIELD SIGN VALUE."),
        ('"a"="1"', "Unparseable filter: a comparison is FIELD SIGN VALUE."),
        ('timestamp:"2026-11-22T10:00:00Z"', "Unparseable filter: timestamp:."),
        ('timestamp="2026-11-22"', "Unparseable filter: '2026-11-22' is no time."),
        ("(" * 21 + 'a="1"' + ")" * 21, "Unparseable filter: too deep."),
        ("NOT " * 21 + 'a="1"', "Unparseable filter: too deep."),
    ],
)
def test_what_is_not_understood_is_said(text: str, said: str) -> None:
    with pytest.raises(FilterError) as told:
        parse(text, KNOWN)
    assert str(told.value) == said


@pytest.mark.parametrize("text", ["(" * 20 + 'a="1"' + ")" * 20, "NOT " * 20 + 'a="1"'])
def test_twenty_levels_are_read(text: str) -> None:
    assert parse(text, KNOWN).test(ENTRY.__getitem__) is True


def test_what_was_read_of_a_time_is_in_utc() -> None:
    read = parse_time("2026-11-22T08:30:00.1234567-0130")
    assert read.isoformat() == "2026-11-22T10:00:00.123456+00:00"
    assert parse_time("2026-11-22T10:00:00").isoformat() == "2026-11-22T10:00:00+00:00"


SEVERITIES = (
    *("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"),
)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_severities_are_in_the_order_of_their_weight(severity: str) -> None:
    def found(sign: str) -> tuple[str, ...]:
        test = parse(f"severity{sign}{severity}", ["severity"]).test
        return tuple(each for each in SEVERITIES if test({"severity": each}.__getitem__))

    place = SEVERITIES.index(severity)
    assert found("<") == SEVERITIES[:place]
    assert found("<=") == SEVERITIES[: place + 1]
    assert found(">") == SEVERITIES[place + 1 :]
    assert found(">=") == SEVERITIES[place:]
    assert found("=") == (severity,)


def test_what_is_no_severity_has_no_place_among_them() -> None:
    with pytest.raises(FilterError) as told:
        parse("severity>=LOUD", ["severity"])
    assert str(told.value) == "Unparseable filter: 'LOUD' is no severity."
