"""Changes of a resource, property by property, for each kind of property that a schema has."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import diff
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema


def prop(name: str = "p", type_: str = "string", **flags: Any) -> Property:
    children = {each.name: each for each in flags.pop("children", ())}
    return Property(name, name, type_, **{"optional": True, **flags}, children=children)


def found(
    given: Property | list[Property], old: Any, new: Any, traits: Traits | None = None
) -> list[tuple[str, str, bool]]:
    """Changes from an output to an input; of several properties, both are mappings."""
    several = given if isinstance(given, list) else [given]
    schema = TypeSchema(
        "gcp:x:X", {each.name: each for each in several}, None, (), False, None, traits or Traits()
    )
    if not isinstance(given, list):
        old, new = {given.name: old}, {given.name: new}
    news = {key: value for key, value in new.items() if value is not None}
    changes = diff.changes(schema, news, old, Settings(), lambda _news, _olds: [])
    return [(each.path, each.kind, each.replace) for each in changes]


SCALAR, NEW = prop(), prop(force_new=True)


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (NEW, None, "b", [("p", "add", True)]),
        (SCALAR, "a", None, [("p", "delete", False)]),
        (SCALAR, "", None, []),
        (prop(default="a"), "a", None, []),
        (SCALAR, "a", UNKNOWN, [("p", "update", False)]),
        (SCALAR, "a", Secret("a"), []),
        (prop(optional=False), "a", "b", []),
        # Texts of numbers and booleans are the same values.
        (prop(type_="string"), True, "true", []),
    ],
)
def test_a_value_is_compared_with_what_the_cloud_has(
    given: Property, old: Any, new: Any, wanted: Any
) -> None:
    assert found(given, old, new) == wanted


A, B = prop("a"), prop("b", force_new=True)
BLOCK = prop(type_="object", children=[A, prop("n", "int"), prop("c", computed=True)])


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (BLOCK, None, {"a": "x"}, [("p", "add", False)]),
        (prop(type_="object", children=[A, B]), None, {"a": "x"}, [("p", "add", True)]),
        (prop(type_="object", children=[A, B]), {"a": "x"}, None, [("p", "delete", True)]),
        (BLOCK, {"a": "x", "n": 0}, {"a": "x"}, []),
        (BLOCK, {"a": "x", "n": 1, "c": "y"}, {"a": "z"},
         [("p.a", "update", False), ("p.n", "delete", False)]),
    ],
)  # fmt: skip
def test_a_block_changes_where_its_fields_do(
    given: Property, old: Any, new: Any, wanted: Any
) -> None:
    assert found(given, old, new) == wanted


TEXTS, ROWS = prop(type_="list<string>"), prop(type_="list<object>", children=[A, B])


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (TEXTS, [], ["a"], [("p", "add", False)]),
        (TEXTS, [], [], []),
        (TEXTS, ["a", "b"], ["a"], [("p[1]", "delete", False)]),
        (TEXTS, ["a", "b"], ["b", "a"], [("p[0]", "update", False), ("p[1]", "update", False)]),
        (TEXTS, ["a"], [UNKNOWN], [("p[0]", "update", False)]),
        (ROWS, [{"a": "x", "b": "y"}], [{"a": "z", "b": "y"}], [("p[0].a", "update", False)]),
        (ROWS, [{"a": "x"}], [{"a": "x"}, {"a": "y"}], [("p[1]", "add", True)]),
    ],
)
def test_a_list_is_compared_in_its_order(given: Property, old: Any, new: Any, wanted: Any) -> None:
    assert found(given, old, new) == wanted


SET, SET_OF_ROWS = prop(type_="set<string>"), prop(type_="set<object>", children=[A, B])


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (SET, ["a", "b"], ["b", "a"], []),
        (SET, ["a", "b"], ["c", "a"], [("p[0]", "add", False), ("p[1]", "delete", False)]),
        (SET, ["a", "b"], ["a", "c"], [("p[1]", "update", False)]),
        (SET, ["a"], ["a", "b"], [("p[1]", "add", False)]),
        (SET_OF_ROWS, [{"a": "x", "b": "q"}], [{"a": "x", "b": "r"}],
         [("p[0].b", "update", True)]),
        (SET_OF_ROWS, [{"a": "x"}], [{"a": "x"}, {"a": "y"}], [("p[1]", "add", True)]),
    ],
)  # fmt: skip
def test_a_set_is_compared_without_an_order(
    given: Property, old: Any, new: Any, wanted: Any
) -> None:
    assert found(given, old, new) == wanted


MAP = prop(type_="map<string>")


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (MAP, None, {"a": "1"}, [("p", "add", False)]),
        (prop(type_="map<string>", force_new=True), None, {"a": "1"}, [("p", "add", True)]),
        (MAP, {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"},
         [("p.b", "update", False), ("p.c", "delete", False), ("p.d", "add", False)]),
        (MAP, {"x.y/z": "1"}, {"x.y/z": "2"}, [('p["x.y/z"]', "update", False)]),
        (MAP, {}, {"__defaults": []}, []),
        (MAP, {"a": "1"}, {}, [("p.a", "delete", False)]),
    ],
)  # fmt: skip
def test_a_map_is_compared_key_by_key(given: Property, old: Any, new: Any, wanted: Any) -> None:
    assert found(given, old, new) == wanted
