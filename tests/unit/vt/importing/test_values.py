"""Values that reading code gives: texts, truth and size, and what two branches make of them."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.importing.imported import Note
from vertex_training_cli.importing.values import (
    ABOUT,
    DROPPED,
    ClientCall,
    Merge,
    Noted,
    UnresolvedValue,
    annotate,
    bare,
    is_certain,
    is_known,
    plain,
    text,
    truth,
)

ONE, TWO = Note("one", "f, line 1"), Note("two", "f, line 2", guessed=True)
OPEN = UnresolvedValue("x")


@pytest.mark.parametrize(
    ("container", "found"),
    [
        ({}, {ABOUT: Noted(None, frozenset({ONE}))}),
        ({"a": 1, ABOUT: Noted(None, frozenset({TWO}))},
         {"a": 1, ABOUT: Noted(None, frozenset({ONE, TWO}))}),
        ([], [Noted(DROPPED, frozenset({ONE}))]),
        ([1, 2], [Noted(1, frozenset({ONE})), 2]),
        ("a", "a"),
    ],
)  # fmt: skip
def test_a_list_or_mapping_holds_what_is_said_of_it(container: Any, found: Any) -> None:
    annotate(container, {ONE})
    assert container == found


@pytest.mark.parametrize(
    ("value", "certain", "known", "is_true"),
    [
        (None, True, True, False), (0, True, True, False), (1.5, True, True, True),
        ("", True, True, False), ("a", True, True, True), (True, True, True, True),
        ("<A>", False, False, None), ("x<A_1>", False, False, True),
        ("${job.requestId}", False, False, None), ("a${job.requestId}", False, False, True),
        ("<a>", True, True, True), (OPEN, False, False, None),
        ([], False, True, False), ([1, "a"], False, True, True), ([OPEN], False, False, True),
        ([[OPEN]], False, False, True), ({}, False, True, False), ({"a": 1}, False, True, True),
        ({"a": OPEN}, False, False, True), ({ABOUT: Noted(None, frozenset())}, False, True, False),
        ([Noted(DROPPED, frozenset({ONE}))], False, False, False),
        (ClientCall("CustomJob", {}, ""), False, False, True),
    ],
)  # fmt: skip
def test_what_is_known_of_a_value(
    value: Any, certain: bool, known: bool, is_true: bool | None
) -> None:
    assert (is_certain(value), is_known(value), truth(value)) == (certain, known, is_true)


def test_the_text_of_a_long_value_is_none() -> None:
    # A text counts for its characters, anything else for two; so does the list around it.
    assert text([1] * 19_999) == str([1] * 19_999)
    assert text([1] * 100_000) == "<LONG_VALUE>"
    assert text(["a" * 199_998]) == str(["a" * 199_998])
    assert text(["a" * 199_999]) == "<LONG_VALUE>"
    assert text({"a" * 100_000: "a" * 99_998}) == str({"a" * 100_000: "a" * 99_998})
    assert text({"a" * 100_000: "a" * 99_999}) == "<LONG_VALUE>"
    nested: Any = [1]
    for _ in range(40):
        nested = [nested, nested]
    assert (text(nested), is_known(nested)) == ("<LONG_VALUE>", False)


def merged(one: Any, other: Any) -> tuple[Any, list[str]]:
    said = set[Note]()
    found = Merge("if c", "f, line 9").values(one, other, "v")
    return plain(found, said), sorted(map(str, said))


@pytest.mark.parametrize(
    ("one", "other", "found", "said"),
    [
        ("a", OPEN, "<YOUR_V>", ["v is 'a' or <YOUR_X>: `if c` cannot be decided"]),
        ({}, ClientCall("CustomJob", {}, ""), "<YOUR_V>",
         ["v is a mapping or a CustomJob: `if c` cannot be decided"]),
        ([1, 2], [1, 3], [1, "<V_1>"], ["v[1] is 2 or 3: `if c` cannot be decided"]),
        ([1], [1, 2], [1, 2], ["v has all 2 items only by `if c`, which cannot be decided"]),
        ({"a": 1}, {"a": 2}, {"a": "<YOUR_A>"}, ["a is 1 or 2: `if c` cannot be decided"]),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, [
            "a is only there by `if c`, which cannot be decided",
            "b is only there by `if c`, which cannot be decided"]),
        ({ABOUT: Noted(None, frozenset({ONE}))}, {ABOUT: Noted(None, frozenset({TWO}))}, {},
         ["one", "two"]),
    ],
)  # fmt: skip
def test_two_branches_make_one_value_or_an_open_one(
    one: Any, other: Any, found: Any, said: list[str]
) -> None:
    places = {"one": "f, line 1", "two": "f, line 2"}
    expected = [f"{each} ({places.get(each, 'f, line 9')})" for each in said]
    assert merged(one, other) == (found, expected)


def test_a_list_in_itself_is_merged() -> None:
    one: list[Any] = [1]
    other: list[Any] = [2]
    one.append(one)
    other.append(other)
    found = Merge("if c", "f, line 9").values(one, other, "v")
    assert bare(found) is one
    assert bare(one[1]) is one
