"""Filters of Cloud Logging, as gcloud and this project write them."""

from __future__ import annotations

import pytest

from localgcp.clients.log_filters import parse
from localgcp.errors import FilterError

KNOWN = ("a", "b", "timestamp", "insertId")
ENTRY = {"a": "1", "b": "Text", "timestamp": "2026-11-22T10:00:00.500000+00:00", "insertId": "i5"}


@pytest.mark.parametrize(
    "text",
    ["a", "a=",  '="1"', 'c="1"', "(", '(a="1"', 'a="1")', 'a="1" AND', 'a="open',
     "timestamp>=now", 'timestamp:"2026"', "(" * 5000, "NOT " * 5000, 'a=~"x"',
     'timestamp>="9999-99-99T99:99:99Z"'],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text, KNOWN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('c="1"', "Unparseable filter: 'c' (the local cloud knows few)."),
        ('a="1")', "Unparseable filter: 'a=\"1\")' (the local cloud knows few)."),
        ('a="open', "Unparseable filter: '\"open'."),
        ('(a="1"', "Unparseable filter: a parenthesis is open."),
        ('a=~"x"', "Unparseable filter: the local cloud knows no regular expressions."),
        ("a=", "Unparseable filter: a comparison is FIELD SIGN VALUE."),
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
