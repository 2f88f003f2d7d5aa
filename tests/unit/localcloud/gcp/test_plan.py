"""Outputs of a resource before it exists, when it is made, and after an update."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import plan
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema

SETTINGS = Settings("p1", "us-west1", "us-west1-b")


def prop(name: str, type_: str = "string", **flags: Any) -> Property:
    children = {each.name: each for each in flags.pop("children", ())}
    return Property(name, name, type_, **{"optional": True, **flags}, children=children)


def schema(*props: Property, traits: Traits | None = None) -> TypeSchema:
    named = {each.name: each for each in props}
    return TypeSchema("gcp:x:X", named, None, (), False, None, traits or Traits())


OUTPUT = {"optional": False, "computed": True}
INNER = [prop("given"), prop("filled", computed=True), prop("usual", default=7),
         prop("number", "int")]  # fmt: skip


ALL = schema(
    prop("given"),
    prop("usual", default="x"),
    prop("none"),
    prop("list", "list<string>"),
    prop("rows", "list<object>", children=INNER),
    prop("set", "set<object>", children=INNER),
    prop("map", "map<string>"),
    prop("block", "object", children=INNER),
    prop("flag", "bool"),
    prop("count", "int", has_unset=True, unset=3),
    prop("effectiveLabels", "map<string>", **OUTPUT),
    prop("pulumiLabels", "map<string>", **OUTPUT, sensitive=True),
    prop("link", **OUTPUT),
    prop("project", computed=True),
    prop("deletionPolicy", computed=True),
)


def test_nested_values_are_filled_in_while_planning() -> None:
    inputs = {
        "block": {"given": "a", "__defaults": [], "more": 1},
        "rows": [{"given": "b", "__defaults": ["x"]}, UNKNOWN],
    }
    found = plan.preview(schema(ALL.properties["block"], ALL.properties["rows"]), inputs,
                         SETTINGS, {})  # fmt: skip
    assert found == {
        "block": {"given": "a", "filled": UNKNOWN, "usual": 7, "more": 1},
        "rows": [{"given": "b", "filled": UNKNOWN, "usual": 7}, UNKNOWN],
    }


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (prop("project", computed=True), "p1"),
        (prop("project", computed=True, has_unset=True, unset="u"), "u"),
        (prop("project"), ""),
        (prop("other", computed=True), ""),
        (prop("other", "object"), None),
    ],
)
def test_a_project_that_is_not_given_is_the_providers(given: Property, value: Any) -> None:
    assert plan.created(schema(given), {}, SETTINGS, {}) == {given.name: value}


def test_what_comes_of_a_secret_is_one() -> None:
    type_ = schema(prop("a"), prop("b", "list<string>"), prop("c", sensitive=True), prop("d"))
    inputs = {"a": Secret("x"), "b": ["y", Secret("z")], "c": "w", "d": "v"}
    wanted = {"a": Secret("x"), "b": Secret(["y", "z"]), "c": Secret("w"), "d": "v"}
    assert plan.preview(type_, inputs, SETTINGS, {}) == wanted
    assert plan.created(type_, inputs, SETTINGS, {}) == wanted
