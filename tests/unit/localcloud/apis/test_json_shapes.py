"""JSON that fits a message, and every mistake of one that does not, in Google's words."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis.json_shapes import BOOLEANS, Scalar, Shape, check

STRING, INT32, UINT32 = (
    Shape(scalar=each) for each in (Scalar.STRING, Scalar.INT32, Scalar.UINT32)
)
COLOURS = Shape(scalar=Scalar.ENUM, values=frozenset({"RED", "BLUE"}))
INNER = Shape(fields={"text": STRING, "number": INT32}.get, name="x.Inner")
FIELDS: dict[str, Shape] = {
    "text": STRING,
    "theNumber": INT32,
    "inner": INNER,
    "texts": Shape(item=STRING),
    "inners": Shape(item=INNER),
    "labels": Shape(value=STRING),
    "colour": COLOURS,
    "any": Shape(),
}
MESSAGE = Shape(fields=FIELDS.get, name="x.Message")


@pytest.mark.parametrize(
    ("scalar", "right", "wrong"),
    [
        (Scalar.STRING, ["", "a", "é"], [1, True, {}, "\ud800"]),
        (Scalar.BOOL, [True, False], ["true", 0, 1]),
        (Scalar.INT32, [0, -(2**31), 2**31 - 1, "7", "-7", 1.0, "1e2", "2.0"],
         [2**31, -(2**31) - 1, "2147483648", 1.5, "1.5", "x", "", True, "0x1", " 1", "1e400"]),
        (Scalar.UINT32, [0, 2**32 - 1, "0"], [-1, 2**32, "-1"]),
        (Scalar.INT64, [-(2**63), 2**63 - 1, str(2**63 - 1)], [2**63, -(2**63) - 1]),
        (Scalar.UINT64, [0, 2**64 - 1], [-1, 2**64, str(2**64)]),
        (Scalar.DOUBLE, [0, 1.5, "1.5", "-2e-3", "7"],
         [True, "x", "NaNs", "", float("inf"), float("nan"), "1e999", {}]),
        (Scalar.BYTES, ["", "YWJj", "YWI=", "YWI", "-_-_", "-AA", "_AA"], [1, "a", "a b", "é"]),
    ],
)  # fmt: skip
def test_a_value_is_of_its_type(scalar: Scalar, right: list[Any], wrong: list[Any]) -> None:
    """https://protobuf.dev/programming-guides/json has the forms."""
    shape = Shape(scalar=scalar)
    assert [each for each in right if [*check(each, shape, "v")]] == []
    assert [each for each in wrong if not [*check(each, shape, "v")]] == []


@pytest.mark.parametrize(("value", "good"), [("RED", True), ("GREEN", False), (3, True),
                                             (True, False), (1.5, False)])  # fmt: skip
def test_an_enum_is_a_name_or_a_number(value: Any, good: bool) -> None:
    assert ([*check(value, COLOURS, "v")] == []) is good


def test_a_value_of_any_type_is_judged_by_its_own_parser() -> None:
    shape = Shape(name="google.protobuf.Duration", parses=lambda value: value == "1s")
    assert [*check("1s", shape, "d")] == []
    assert [*check("x", shape, "d")] == [
        ("d", "Invalid value at 'd' (type.googleapis.com/google.protobuf.Duration), \"x\""),
    ]  # fmt: skip
    assert [*check([1, {}], Shape(), "d")] == []


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({}, []),
        ({"text": "a", "theNumber": 1, "inner": {"text": "b"}, "texts": ["c"], "any": {"x": [1]},
          "inners": [{"number": 1}], "labels": {"k": "v"}, "colour": "RED"}, []),
        ({"text": None, "inner": None, "texts": None}, []),
        ([], [("", "Invalid value at '' (type.googleapis.com/x.Message), []")]),
        ({"nope": 1}, [("", 'Unknown name "nope": Cannot find field.')]),
        ({"inner": {"nope": 1}},
         [("inner", "Unknown name \"nope\" at 'inner': Cannot find field.")]),
        ({"theNumber": "x"},
         [("the_number", "Invalid value at 'the_number' (TYPE_INT32), \"x\"")]),
        ({"inner": {"number": 1.5}},
         [("inner.number", "Invalid value at 'inner.number' (TYPE_INT32), 1.5")]),
        ({"inner": "x"},
         [("inner", "Invalid value at 'inner' (type.googleapis.com/x.Inner), \"x\"")]),
        ({"texts": "x"}, [("texts", "Invalid value at 'texts' (TYPE_STRING), \"x\"")]),
        ({"texts": ["a", 1, None, True]},
         [("texts[1]", "Invalid value at 'texts[1]' (TYPE_STRING), 1"),
          ("texts[3]", "Invalid value at 'texts[3]' (TYPE_STRING), true")]),
        ({"inners": [{}, {"x": 1}]},
         [("inners[1]", "Unknown name \"x\" at 'inners[1]': Cannot find field.")]),
        ({"labels": {"a.B": 1}},
         [("labels.[a.B]", "Invalid value at 'labels.[a.B]' (TYPE_STRING), 1")]),
        ({"labels": []}, [("labels", "Invalid value at 'labels' (TYPE_MESSAGE), []")]),
        ({"text": ["a"]},
         [("", 'Unknown name "text": Proto field is not repeating, cannot start list.')]),
        ({"inner": {"text": []}},
         [("inner", "Unknown name \"text\" at 'inner': Proto field is not repeating, cannot start "
           "list.")]),
        ({"colour": "GREEN"}, [("colour", "Invalid value at 'colour' (TYPE_ENUM), \"GREEN\"")]),
        ({"text": 1, "theNumber": "x"},
         [("text", "Invalid value at 'text' (TYPE_STRING), 1"),
          ("the_number", "Invalid value at 'the_number' (TYPE_INT32), \"x\"")]),
        ({"theNumber": "é" * 300},
         [("the_number", f"Invalid value at 'the_number' (TYPE_INT32), \"{'é' * 199}")]),
    ],
)  # fmt: skip
def test_every_mistake_is_told_with_its_place(found: Any, wanted: Any) -> None:
    assert [*check(found, MESSAGE)] == wanted


def test_a_place_begins_with_that_of_the_document() -> None:
    assert [*check({"text": 1, "x": 2}, MESSAGE, "resource")] == [
        ("resource.text", "Invalid value at 'resource.text' (TYPE_STRING), 1"),
        ("resource", "Unknown name \"x\" at 'resource': Cannot find field."),
    ]


@pytest.mark.parametrize(("depth", "deep"), [(101, False), (102, True)])
def test_a_document_has_a_hundred_levels_at_most(depth: int, deep: bool) -> None:
    shape = Shape(fields=lambda _: shape)
    found: Any = {}
    for _ in range(depth):
        found = {"a": found}
    path = ".".join(["a"] * 102)
    text = f"Message too deep. Max recursion depth reached for key '{path[-40:]}'"
    assert [*check(found, shape)] == ([(path, text)] if deep else [])


def test_texts_of_a_query_are_booleans() -> None:
    assert BOOLEANS == {"true": True, "True": True, "1": True, "false": False, "False": False}
