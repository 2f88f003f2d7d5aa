"""Values that reading code gives: texts, truth and size, and what two branches make of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import values
from vertex_training_cli.importing.imported import Note
from vertex_training_cli.importing.values import (
    ABOUT,
    DROPPED,
    ClientCall,
    Merge,
    Noted,
    Tuple,
    UnresolvedValue,
    annotate,
    bare,
    is_certain,
    is_known,
    noted,
    notes_of,
    plain,
    text,
    truth,
)

ONE, TWO = Note("one", "f, line 1"), Note("two", "f, line 2", guessed=True)
OPEN = UnresolvedValue("x")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x", "<YOUR_X>"), ("bucketName", "<YOUR_BUCKETNAME>"), ("bucket_name", "<BUCKET_NAME>"),
        ("a.b", "<A_B>"), ("--a--", "<YOUR_A>"), ("", "<YOUR_VALUE>"), ("…", "<YOUR_VALUE>"),
        ("gpu2", "<YOUR_GPU2>"),
    ],
)  # fmt: skip
def test_an_open_value_is_a_name_to_be_filled_in(name: str, shown: str) -> None:
    assert str(UnresolvedValue(name)) == shown
    assert UnresolvedValue(name) == UnresolvedValue(name, optional=False, either=())


def test_an_open_value_and_a_job_stay_the_one_they_are() -> None:
    call = ClientCall("CustomJob", {}, "f, line 1")
    assert copy.deepcopy([OPEN, call]) == [OPEN, call]
    assert copy.deepcopy(OPEN) is OPEN
    assert (call.notes, call.submitted, call.inner) == (set(), False, False)


@pytest.mark.parametrize(
    ("value", "notes", "found"),
    [
        (1, set(), 1),
        (1, {ONE}, Noted(1, frozenset({ONE}))),
        (Noted(1, frozenset({ONE})), {TWO}, Noted(1, frozenset({ONE, TWO}))),
        (Noted(1, frozenset({ONE})), set(), Noted(1, frozenset({ONE}))),
    ],
)
def test_notes_add_up(value: Any, notes: set[Note], found: Any) -> None:
    assert noted(value, notes) == found
    assert (bare(found), notes_of(found)) == (1, getattr(found, "notes", frozenset()))


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
        (Noted(1, frozenset()), False, True, None),
    ],
)  # fmt: skip
def test_what_is_known_of_a_value(
    value: Any, certain: bool, known: bool, is_true: bool | None
) -> None:
    assert (is_certain(value), is_known(value), truth(value)) == (certain, known, is_true)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1, "1"), (None, "None"), ("a", "a"), (OPEN, "<YOUR_X>"), ([1, "a"], "[1, 'a']"),
        (Tuple([1, [OPEN]]), "(1, ['<YOUR_X>'])"), ({"a": Tuple([1])}, "{'a': (1,)}"),
        ({"a": 1, ABOUT: Noted(None, frozenset({ONE}))}, "{'a': 1}"),
        ([Noted(DROPPED, frozenset({ONE}))], "[]"),
    ],
)  # fmt: skip
def test_a_value_within_a_text(value: Any, shown: str) -> None:
    assert text(value) == shown


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


def test_more_values_than_a_job_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MAX_VALUES", 4)
    assert plain([1, 3, 4]) == [1, 3, 4]
    with pytest.raises(CommandError) as told:
        plain([1, [2, 3]])
    assert told.value.message == "a value in the code is larger than any job."


def test_plain_values_have_texts_for_what_is_open_and_tell_their_notes() -> None:
    said = set[Note]()
    given = {
        "a": Noted([Noted(OPEN, frozenset({ONE})), object(), ClientCall("J", {}, "")],
                   frozenset({TWO})),
        ABOUT: Noted(None, frozenset({Note("about", "p")})), "t": Tuple([1]),
    }  # fmt: skip
    assert plain(given, said) == {"a": ["<YOUR_X>", "<YOUR_VALUE>", "<YOUR_VALUE>"], "t": [1]}
    assert said == {ONE, TWO, Note("about", "p")}
    assert type(plain(given)["t"]) is list
    assert type(plain(given, tuples=True)["t"]) is tuple


def merged(one: Any, other: Any) -> tuple[Any, list[str]]:
    said = set[Note]()
    found = Merge("if c", "f, line 9").values(one, other, "v")
    return plain(found, said), sorted(map(str, said))


@pytest.mark.parametrize(
    ("one", "other", "found", "said"),
    [
        (1, 1, 1, []),
        (1, 2, "<YOUR_V>", ["v is 1 or 2: `if c` cannot be decided"]),
        (1, 1.0, "<YOUR_V>", ["v is 1 or 1.0: `if c` cannot be decided"]),
        (1, True, "<YOUR_V>", ["v is 1 or True: `if c` cannot be decided"]),
        ("<A>", "<A>", "<A>", []),
        ("a", OPEN, "<YOUR_V>", ["v is 'a' or <YOUR_X>: `if c` cannot be decided"]),
        (OPEN, UnresolvedValue("x"), "<YOUR_X>", []),
        (None, [1], "<YOUR_V>", ["v is None or a list: `if c` cannot be decided"]),
        ({}, ClientCall("CustomJob", {}, ""), "<YOUR_V>",
         ["v is a mapping or a CustomJob: `if c` cannot be decided"]),
        (UnresolvedValue("v", either=(1, 2)), 2, "<YOUR_V>",
         ["v is 1 or 2: `if c` cannot be decided"]),
        ("w" * 90, "", "<YOUR_V>",
         [f"v is '{'w' * 79} or '': `if c` cannot be decided"]),
        ([1, 2], [1, 3], [1, "<V_1>"], ["v[1] is 2 or 3: `if c` cannot be decided"]),
        ([1], [1, 2], [1, 2], ["v has all 2 items only by `if c`, which cannot be decided"]),
        ([1, 2], [1], [1, 2], ["v has all 2 items only by `if c`, which cannot be decided"]),
        ([], [], [], []),
        ({"a": 1}, {"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, {"a": "<YOUR_A>"}, ["a is 1 or 2: `if c` cannot be decided"]),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, [
            "a is only there by `if c`, which cannot be decided",
            "b is only there by `if c`, which cannot be decided"]),
        (Noted(1, frozenset({ONE})), Noted(1, frozenset({TWO})), 1, ["one", "two"]),
        ({ABOUT: Noted(None, frozenset({ONE}))}, {ABOUT: Noted(None, frozenset({TWO}))}, {},
         ["one", "two"]),
        ({}, {ABOUT: Noted(None, frozenset({TWO}))}, {}, ["two"]),
    ],
)  # fmt: skip
def test_two_branches_make_one_value_or_an_open_one(
    one: Any, other: Any, found: Any, said: list[str]
) -> None:
    places = {"one": "f, line 1", "two": "f, line 2"}
    expected = [f"{each} ({places.get(each, 'f, line 9')})" for each in said]
    assert merged(one, other) == (found, expected)


def test_what_has_two_names_is_merged_once_and_stays_the_one_it_is() -> None:
    shared, other = [1], [2]
    scope: dict[str, Any] = {"a": shared, "b": shared, "c": 1}
    Merge("if c", "f, line 9").names(scope, {"a": other, "b": other, "d": 2})
    assert scope["a"] is scope["b"] is shared
    said = set[Note]()
    assert plain(scope, said) == {"a": ["<A_0>"], "b": ["<A_0>"], "c": 1, "d": 2}
    assert sorted(note.text for note in said) == [
        "a[0] is 1 or 2: `if c` cannot be decided",
        "c is only set by `if c`, which cannot be decided",
        "d is only set by `if c`, which cannot be decided",
    ]


def test_a_list_in_itself_is_merged() -> None:
    one: list[Any] = [1]
    other: list[Any] = [2]
    one.append(one)
    other.append(other)
    found = Merge("if c", "f, line 9").values(one, other, "v")
    assert bare(found) is one
    assert bare(one[1]) is one
