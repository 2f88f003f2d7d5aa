"""Changes of a resource, property by property, for each kind of property that a schema has."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import diff
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.diff import Change
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema

OWN_LABELS = {"goog-pulumi-provisioned": "true"}


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
        (SCALAR, "a", "a", []),
        (SCALAR, "a", "b", [("p", "update", False)]),
        (NEW, "a", "b", [("p", "update", True)]),
        (NEW, None, "b", [("p", "add", True)]),
        (SCALAR, None, "b", [("p", "add", False)]),
        (SCALAR, None, "", []),
        (prop(type_="bool"), None, False, []),
        (prop(optional=False, required=True), None, "", [("p", "add", False)]),
        (SCALAR, "a", None, [("p", "delete", False)]),
        (NEW, "a", None, [("p", "delete", True)]),
        (SCALAR, "", None, []),
        (prop(type_="int"), 0, None, []),
        (prop(type_="bool"), False, None, []),
        (prop(computed=True), "a", None, []),
        (prop(has_unset=True, unset="a"), "a", None, []),
        (prop(has_unset=True, unset="a"), "b", None, [("p", "delete", False)]),
        (prop(default="a"), "a", None, []),
        (prop(default="a"), "b", None, [("p", "update", False)]),
        (prop(default="a", computed=True), "b", None, []),
        (SCALAR, "a", UNKNOWN, [("p", "update", False)]),
        (SCALAR, None, UNKNOWN, [("p", "add", False)]),
        (NEW, "a", UNKNOWN, [("p", "update", True)]),
        (SCALAR, "a", Secret("a"), []),
        (SCALAR, Secret("a"), "b", [("p", "update", False)]),
        (prop(optional=False), "a", "b", []),
        # Texts of numbers and booleans are the same values.
        (prop(type_="int"), "7", 7, []),
        (prop(type_="number"), 1.5, "1.5", []),
        (prop(type_="string"), 7, "7", []),
        (prop(type_="int"), 7, 8, [("p", "update", False)]),
        (prop(type_="string"), True, "true", []),
        (prop(type_="bool"), "False", False, []),
        (prop(type_="bool"), False, True, [("p", "update", False)]),
        (prop(type_="asset"), 7, "7", [("p", "update", False)]),
    ],
)
def test_a_value_is_compared_with_what_the_cloud_has(
    given: Property, old: Any, new: Any, wanted: Any
) -> None:
    assert found(given, old, new) == wanted


LINK = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"


@pytest.mark.parametrize(
    ("name", "old", "new", "same"),
    [
        ("network", LINK, "projects/p/global/networks/n", True),
        ("network", LINK, "n", True),
        ("network", "n", LINK, True),
        ("network", LINK, "projects/q/global/networks/n", False),
        ("network", LINK, "m", False),
        ("network", "regions/a/n", "regions/b/n", True),
        ("region", "https://x/projects/p/regions/us-west1", "us-west1", True),
        *((each, f"a/{each}", each, True) for each in (
            "bucket", "cryptoKeyId", "keyRing", "networkUrl", "repository", "secret", "secretId",
            "serviceAccountId", "subnetwork", "zone",
        )),
        ("name", "a/n", "n", False),
    ],
)  # fmt: skip
def test_a_reference_is_the_same_by_its_link_and_by_its_name(
    name: str, old: str, new: str, same: bool
) -> None:
    assert found(prop(name), old, new) == ([] if same else [(name, "update", False)])


def test_references_in_a_list_are_compared_one_by_one() -> None:
    given = prop("subnetworks", "list<string>")
    link = "https://x/projects/p/regions/r/subnetworks/a"
    assert found(given, [link], ["a"]) == []
    assert found(given, [link], ["b"]) == [("subnetworks[0]", "update", False)]


class CaseBlind(Traits):
    ignored_case = ("p",)


def test_case_counts_unless_the_type_ignores_it() -> None:
    assert found(SCALAR, "Tcp", "tcp") == [("p", "update", False)]
    assert found(SCALAR, "Tcp", "tcp", CaseBlind()) == []
    assert found(SCALAR, "udp", "tcp", CaseBlind()) == [("p", "update", False)]


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
        (prop(type_="object", children=[A, B]), {"a": "x", "b": "x"}, {"a": "y", "b": "y"},
         [("p.a", "update", False), ("p.b", "update", True)]),
    ],
)  # fmt: skip
def test_a_block_changes_where_its_fields_do(
    given: Property, old: Any, new: Any, wanted: Any
) -> None:
    assert found(given, old, new) == wanted


class WholeBlocks(Traits):
    new_when_changed = ("p",)


def test_a_block_that_is_kept_as_a_set_is_new_as_a_whole() -> None:
    numbers = [prop("n", "int"), prop("f", "number", force_new=True), prop("t", "bool")]
    computed = [prop("c", computed=True, force_new=True)]
    block = prop(type_="object", children=[A, prop("s"), *numbers, *computed])
    old = {"a": "x", "s": "", "n": 0, "f": 0, "t": False, "c": "given"}
    assert found(block, old, {"a": "x"}, WholeBlocks()) == []
    assert found(block, old, {"a": "y"}) == [("p.a", "update", False)]
    assert found(block, old, {"a": "y"}, WholeBlocks()) == [
        ("p.a", "update", False), ("p.c", "update", True), ("p.f", "delete", True),
        ("p.n", "delete", False), ("p.t", "delete", False),
    ]  # fmt: skip
    # What is given, and what was not there before, is not gone.
    assert found(block, {"a": "x", "n": 1}, {"a": "y", "n": 1}, WholeBlocks()) == [
        ("p.a", "update", False),
    ]  # fmt: skip


TEXTS, ROWS = prop(type_="list<string>"), prop(type_="list<object>", children=[A, B])


@pytest.mark.parametrize(
    ("given", "old", "new", "wanted"),
    [
        (TEXTS, ["a"], ["a"], []),
        (TEXTS, [], ["a"], [("p", "add", False)]),
        (TEXTS, None, ["a"], [("p", "add", False)]),
        (TEXTS, ["a"], [], [("p", "delete", False)]),
        (TEXTS, [], [], []),
        (prop(type_="list<string>", computed=True), ["a"], [], []),
        (prop(type_="list<string>", force_new=True), [], ["a"], [("p", "add", True)]),
        (TEXTS, ["a"], ["a", "b"], [("p[1]", "add", False)]),
        (TEXTS, ["a", "b"], ["a"], [("p[1]", "delete", False)]),
        (TEXTS, ["a", "b"], ["b", "a"], [("p[0]", "update", False), ("p[1]", "update", False)]),
        (TEXTS, ["a"], [UNKNOWN], [("p[0]", "update", False)]),
        (ROWS, [{"a": "x", "b": "y"}], [{"a": "z", "b": "y"}], [("p[0].a", "update", False)]),
        (ROWS, [{"a": "x", "b": "y"}], [{"a": "x", "b": "z"}], [("p[0].b", "update", True)]),
        (ROWS, [{"a": "x"}], [{"a": "x"}, {"a": "y"}], [("p[1]", "add", True)]),
        (ROWS, [{"a": "x"}, {"a": "y"}], [{"a": "x"}], [("p[1]", "delete", True)]),
        (ROWS, [{"a": "x"}], [], [("p", "delete", True)]),
        (ROWS, [{"a": "x"}], [UNKNOWN], [("p[0]", "update", True)]),
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
        (SET, ["b", "a"], ["a"], [("p[0]", "delete", False)]),
        (SET, ["a"], ["a", "a"], [("p[1]", "add", False)]),
        (SET_OF_ROWS, [{"a": "x"}, {"a": "y"}], [{"a": "y"}, {"a": "x"}], []),
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
        (prop(type_="map<string>", force_new=True), {"b": "2", "c": "3"}, {"b": "9", "d": "4"},
         [("p.b", "update", True), ("p.c", "delete", True), ("p.d", "add", True)]),
        (MAP, {"x.y/z": "1"}, {"x.y/z": "2"}, [('p["x.y/z"]', "update", False)]),
        (MAP, {}, {"__defaults": []}, []),
        (MAP, {"a": "1"}, {}, [("p.a", "delete", False)]),
    ],
)  # fmt: skip
def test_a_map_is_compared_key_by_key(given: Property, old: Any, new: Any, wanted: Any) -> None:
    assert found(given, old, new) == wanted


class InPlace(Traits):
    updated_in_place = ("b",)


def test_fields_that_no_schema_lists_replace_as_their_block_does() -> None:
    block = prop(type_="list<object>", force_new=True)
    old, news = [{"a": "1", "b": "1"}], [{"a": "2", "b": "2", "__defaults": []}]
    assert found(block, old, news) == [("p[0].a", "update", True), ("p[0].b", "update", True)]
    assert found(block, old, news, InPlace()) == [
        ("p[0].a", "update", True), ("p[0].b", "update", False),
    ]  # fmt: skip
    # What the service filled in is no change.
    for new in ({"a": "1"}, {"a": "1", "c": None}):
        assert found(block, [{"a": "1", "c": "x"}], [new]) == []


def test_labels_are_compared_with_those_that_a_resource_really_has() -> None:
    given = [
        prop("labels", "map<string>"),
        *(prop(name, "map<string>", optional=False, computed=True)
          for name in ("effectiveLabels", "pulumiLabels")),
        prop("self", optional=False, computed=True),
    ]  # fmt: skip
    old = {"labels": {"a": "1"}, "self": "x", "pulumiLabels": OWN_LABELS | {"a": "1"}}
    assert found(given, old, {"labels": {"a": "2"}}) == [
        ("effectiveLabels.a", "add", False),
        ("effectiveLabels.goog-pulumi-provisioned", "add", False),
        ("labels.a", "update", False),
        ("pulumiLabels.a", "update", False),
    ]
    assert found(given, old | {"effectiveLabels": old["pulumiLabels"]}, {"labels": UNKNOWN}) == [
        ("effectiveLabels", "update", False),
        ("labels", "update", False),
        ("pulumiLabels", "update", False),
    ]


class LeftOut(Traits):
    left_to_hook = ("source",)


def test_a_service_adds_what_it_foretells_and_takes_over_what_is_left_to_it() -> None:
    schema = TypeSchema("gcp:x:X", {"source": prop("source"), "b": SCALAR}, None, (), False, None,
                        LeftOut())  # fmt: skip
    seen: list[Any] = []

    def hook(news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        seen.append((news, olds))
        return [Change("md5", "update"), Change("a[0]", "add", True)]

    news, olds = {"source": Secret("x")}, {"source": "y"}
    assert diff.changes(schema, news, olds, Settings(), hook) == [
        Change("a[0]", "add", True), Change("md5", "update", False),
    ]  # fmt: skip
    assert seen == [({"source": "x"}, {"source": "y"})]


@pytest.mark.parametrize(
    ("path", "top"), [("a", "a"), ("a.b", "a"), ("a[0].b", "a"), ('a["x.y"]', "a")]
)
def test_a_path_begins_with_its_property(path: str, top: str) -> None:
    assert Change(path, "add").top == top


@pytest.mark.parametrize(
    ("before", "named", "inputs", "first"),
    [
        (False, False, {}, False),
        (True, False, {}, True),
        (False, True, {"p": "mine"}, True),
        (False, True, {"p": "x-1234567", "__defaults": ["p"]}, False),
        (True, True, {"p": "x-1234567", "__defaults": ["p"]}, True),
    ],
)
def test_a_replacement_that_has_the_same_name_comes_after_the_deletion(
    before: bool, named: bool, inputs: dict[str, Any], first: bool
) -> None:
    schema = TypeSchema("gcp:x:X", {"p": prop(auto_name=named)}, None, (), before, None)
    assert diff.delete_first(schema, inputs) is first
