"""Outputs of a resource before it exists, when it is made, and after an update."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import plan
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema

SETTINGS = Settings("p1", "us-west1", "us-west1-b")
NOTE = {"goog-pulumi-provisioned": "true"}


def prop(name: str, type_: str = "string", **flags: Any) -> Property:
    children = {each.name: each for each in flags.pop("children", ())}
    return Property(name, name, type_, **{"optional": True, **flags}, children=children)


def schema(*props: Property, traits: Traits | None = None) -> TypeSchema:
    named = {each.name: each for each in props}
    return TypeSchema("gcp:x:X", named, None, (), False, None, traits or Traits())


OUTPUT = {"optional": False, "computed": True}
INNER = [prop("given"), prop("filled", computed=True), prop("usual", default=7),
         prop("number", "int")]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "own", "labels"),
    [
        (Settings(), None, NOTE),
        (Settings(), {"a": "1"}, NOTE | {"a": "1"}),
        (Settings(attribution=False), {"a": Secret("1")}, {"a": "1"}),
        (Settings(default_labels={"a": "0", "b": "2"}), {"a": "1"}, NOTE | {"a": "1", "b": "2"}),
        (Settings(default_labels={"goog-pulumi-provisioned": "x"}), {},
         {"goog-pulumi-provisioned": "x"}),
        (Settings(), {"a": UNKNOWN}, UNKNOWN),
        (Settings(), UNKNOWN, UNKNOWN),
    ],
)  # fmt: skip
def test_labels_are_the_plugins_the_providers_and_the_resources(
    settings: Settings, own: Any, labels: Any
) -> None:
    assert settings.labels(own) == labels


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


def test_a_preview_has_what_is_given_foretold_or_unknown() -> None:
    assert plan.preview(ALL, {"given": "a", "labels": {"k": "v"}}, SETTINGS, {}) == {
        "given": "a", "usual": "x", "rows": [], "set": [],
        "effectiveLabels": NOTE | {"k": "v"}, "pulumiLabels": Secret(NOTE | {"k": "v"}),
        "link": UNKNOWN, "project": "p1", "deletionPolicy": "DELETE",
    }  # fmt: skip


def test_a_service_may_foretell_more() -> None:
    found = plan.preview(ALL, {}, Settings(), {"link": "l", "usual": None, "given": "g"})
    assert found == {
        "given": "g", "link": "l", "rows": [], "set": [], "effectiveLabels": NOTE,
        "pulumiLabels": Secret(NOTE), "project": UNKNOWN, "deletionPolicy": "DELETE",
    }  # fmt: skip


class Later(Traits):
    project_later = True
    deletion_policy_later = True


def test_some_types_say_their_project_and_policy_when_they_exist() -> None:
    given = (prop("project", computed=True), prop("deletionPolicy", computed=True))
    found = plan.preview(schema(*given, traits=Later()), {}, SETTINGS, {})
    assert found == {"project": UNKNOWN, "deletionPolicy": UNKNOWN}
    only_output = schema(prop("project", **OUTPUT))
    assert plan.preview(only_output, {}, SETTINGS, {}) == {"project": UNKNOWN}


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


def test_what_is_made_has_every_property() -> None:
    inputs = {"given": "a", "block": {"given": "b"}, "set": [{"given": "c"}]}
    inner = {"filled": "", "usual": 7, "number": 0}
    assert plan.created(ALL, inputs, SETTINGS, {"link": "l"}) == {
        "given": "a", "usual": "x", "none": "", "list": [], "rows": [], "map": {},
        "set": [{"given": "c", **inner}], "block": {"given": "b", **inner}, "flag": False,
        "count": 3, "effectiveLabels": NOTE, "pulumiLabels": Secret(NOTE), "link": "l",
        "project": "p1", "deletionPolicy": "",
    }  # fmt: skip


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


def test_an_update_keeps_what_the_service_decided() -> None:
    inputs = {"given": "new", "block": {"given": "b", "filled": None}, "rows": [{}, {}]}
    olds = {
        "given": "old", "link": Secret("kept"), "project": "p9", "none": "gone", "usual": "y",
        "block": {"given": "a", "filled": "kept", "usual": 9}, "rows": [{"filled": "first"}],
        "deletionPolicy": "ABANDON", "count": 9,
    }  # fmt: skip
    known = ("given", "none", "usual", "block", "rows", "link", "project", "deletionPolicy",
             "count")  # fmt: skip
    type_ = schema(*(ALL.properties[name] for name in known))
    done = plan.updated(type_, inputs, olds, SETTINGS, {}, planning=False)
    row = {"given": "", "usual": 7, "number": 0}
    assert done == {
        "given": "new", "none": "", "usual": "x", "link": "kept", "project": "p9",
        "block": {"given": "b", "filled": "kept", "usual": 7, "number": 0},
        "rows": [{**row, "filled": "first"}, {**row, "filled": ""}],
        "deletionPolicy": "ABANDON", "count": 3,
    }  # fmt: skip
    planned = plan.updated(type_, inputs, olds, SETTINGS, {"link": UNKNOWN}, planning=True)
    assert planned == done | {
        "link": UNKNOWN,
        "block": {"given": "b", "filled": "kept", "usual": 7},
        "rows": [{"filled": "first", "usual": 7}, {"filled": UNKNOWN, "usual": 7}],
    }


def test_a_set_that_has_ids_comes_back_sorted_by_them() -> None:
    rows = [{"id": "b"}, {"id": "a"}]
    for type_, planning, wanted in (
        ("set<object>", False, rows[::-1]),
        ("set<object>", True, rows),
        ("list<object>", False, rows),
    ):
        given = schema(prop("rows", type_, children=[prop("id")]))
        found = plan.updated(given, {"rows": rows}, {}, SETTINGS, {}, planning=planning)
        assert found == {"rows": wanted}
    unnamed = schema(prop("rows", "set<object>", children=[prop("n")]))
    for mixed in ([{"n": "b"}, {"n": "a"}], [{"id": "b", "n": "b"}, {"n": "a"}]):
        assert plan.created(unnamed, {"rows": mixed}, SETTINGS, {}) == {"rows": mixed}


def test_what_comes_of_a_secret_is_one() -> None:
    type_ = schema(prop("a"), prop("b", "list<string>"), prop("c", sensitive=True), prop("d"))
    inputs = {"a": Secret("x"), "b": ["y", Secret("z")], "c": "w", "d": "v"}
    wanted = {"a": Secret("x"), "b": Secret(["y", "z"]), "c": Secret("w"), "d": "v"}
    assert plan.preview(type_, inputs, SETTINGS, {}) == wanted
    assert plan.created(type_, inputs, SETTINGS, {}) == wanted
