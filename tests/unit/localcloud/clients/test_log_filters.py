"""Filters of Cloud Logging, as gcloud and this project write them."""

from __future__ import annotations

import pytest

from localgcp.clients.log_filters import parse
from localgcp.errors import FilterError

KNOWN = ("a", "b", "timestamp", "insertId")
ENTRY = {"a": "1", "b": "Text", "timestamp": "2026-11-22T10:00:00.500000+00:00", "insertId": "i5"}
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
