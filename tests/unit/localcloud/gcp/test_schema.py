"""Properties from rows and the package's schema from properties, with types of its own."""

from __future__ import annotations

from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import RefusedError
from localgcp.gcp import cloud as clouds
from localgcp.gcp import package_schema, schema
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.codec import Secret
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema
from localgcp.inventory.store import Store

BOX, BARE = "gcp:boxes/box:Box", "gcp:boxes/bare:Bare"
ROWS: dict[str, Any] = {
    "types": {
        BOX: {
            "idFormat": "boxes/{{name}}",
            "importIds": ["{{name}}", "boxes/{{name}}"],
            "deleteBeforeReplace": True,
            "meta": '{"schema_version": "1"}',
            "properties": [
                {"name": "name", "tf": "name", "type": "string", "required": True,
                 "forceNew": True, "autoName": True},
                {"name": "size", "tf": "size", "type": "int", "optional": True, "default": 1,
                 "pulumiDefault": 2},
                {"name": "weight", "tf": "weight", "type": "number", "computed": True,
                 "sensitive": True},
                {"name": "mode", "tf": "mode", "type": "string", "required": True,
                 "values": ["A", "B"], "default": "A"},
                {"name": "one", "tf": "one", "type": "bool", "optional": True,
                 "exactlyOneOf": ["one", "two"], "conflictsWith": ["three"], "unset": None},
                {"name": "two", "tf": "two", "type": "string", "optional": True, "unset": "u"},
                {"name": "lids", "tf": "lid", "type": "list<object>", "optional": True},
                {"name": "lids[].color", "tf": "color", "type": "string", "required": True},
                {"name": "lids[].hinges", "tf": "hinge", "type": "set<object>", "optional": True},
                {"name": "lids[].hinges[].count", "tf": "count", "type": "int", "required": True},
                {"name": "deep", "tf": "deep", "type": "object", "optional": True},
                {"name": "deep.more", "more": True},
                {"name": "file", "tf": "file", "type": "asset", "optional": True},
                {"name": "tags", "tf": "tags", "type": "map<string>", "optional": True},
                {"name": "names", "tf": "names", "type": "set<string>", "optional": True},
            ],
        },
        BARE: {"deleteBeforeReplace": False, "meta": None, "properties": []},
    },
    "documented": [BARE],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_document", lambda: ROWS)


def given(name: str, tf: str, type_: str, **flags: Any) -> Property:
    return Property(name, tf, type_, optional=True, **flags)


COUNT = Property("count", "count", "int", required=True)
HINGES = given("hinges", "hinge", "set<object>", children={"count": COUNT})
COLOR = Property("color", "color", "string", required=True)
PROPERTIES = {
    "name": Property("name", "name", "string", required=True, force_new=True, auto_name=True),
    "size": given("size", "size", "int", default=2),
    "weight": Property("weight", "weight", "number", computed=True, sensitive=True),
    "mode": Property("mode", "mode", "string", required=True, default="A", values=("A", "B")),
    "one": given("one", "one", "bool", exactly_one_of=("one", "two"), conflicts_with=("three",),
                 has_unset=True),
    "two": given("two", "two", "string", has_unset=True, unset="u"),
    "lids": given("lids", "lid", "list<object>", children={"color": COLOR, "hinges": HINGES}),
    "deep": given("deep", "deep", "object", open=True),
    "file": given("file", "file", "asset"),
    "tags": given("tags", "tags", "map<string>"),
    "names": given("names", "names", "set<string>"),
}  # fmt: skip


def test_a_type_has_the_properties_of_its_rows() -> None:
    found = schema.find(BOX)
    assert found is not None
    ids = ("{{name}}", "boxes/{{name}}")
    meta = '{"schema_version": "1"}'
    assert found.properties == PROPERTIES
    assert [name for name, each in found.properties.items() if each.open] == ["deep"]
    assert found == TypeSchema(BOX, PROPERTIES, "boxes/{{name}}", ids, True, meta, found.traits)
    assert type(found.traits) is Traits
    assert found.by_tf("lid") is found.properties["lids"]
    bare = schema.find(BARE)
    assert bare is not None
    assert bare == TypeSchema(BARE, {}, None, (), False, None, found.traits)
    assert schema.find("gcp:boxes/none:None") is None
    assert (schema.tokens(), schema.documented()) == ([BOX, BARE], [BARE])


def test_traits_that_no_type_changes() -> None:
    names = {name for name in vars(Traits) if not name.startswith("_")}
    assert {name: getattr(Traits, name) for name in names} == {
        "longest_name": 63, "name_as_given": False, "project_later": False,
        "deletion_policy_later": False, "ignored_case": (), "new_when_changed": (),
        "left_to_hook": (), "updated_in_place": (), "rules": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "zero", "kinds"),
    [
        ("string", "", ""),
        ("bool", False, ""),
        ("int", 0, ""),
        ("number", 0, ""),
        ("object", None, "object"),
        ("asset", None, ""),
        ("map<string>", {}, ""),
        ("list<string>", [], "collection"),
        ("list<object>", [], "collection"),
        ("set<string>", [], "collection set"),
    ],
)
def test_a_property_that_is_not_given_has_the_zero_value_of_its_type(
    type_: str, zero: Any, kinds: str
) -> None:
    found = Property("x", "x", type_)
    assert repr(found.zero()) == repr(zero)
    names = ("collection", "set", "object")
    assert [name for name in names if getattr(found, f"is_{name}")] == kinds.split()
    unset = Property("x", "x", type_, has_unset=True, unset={"a": []})
    assert unset.zero() == {"a": []}
    assert unset.zero() is not unset.unset


@pytest.mark.parametrize(
    ("flags", "is_input"),
    [({}, False), ({"computed": True}, False), ({"required": True}, True),
     ({"optional": True, "computed": True}, True)],
)  # fmt: skip
def test_an_input_is_what_a_program_may_set(flags: Any, is_input: bool) -> None:
    assert Property("x", "x", "string", **flags).input is is_input


def test_the_package_has_each_type_and_what_is_nested_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, lids = {"type": "string"}, "gcp:boxes/BoxLids:BoxLids"
    hinges = "gcp:boxes/BoxLidsHinges:BoxLidsHinges"
    inputs = {
        "name": text, "size": {"type": "integer"}, "mode": text, "one": {"type": "boolean"},
        "two": text,
        "lids": {"type": "array", "items": {"$ref": f"#/types/{lids}"}},
        "deep": {"$ref": "pulumi.json#/Any"}, "file": {"$ref": "pulumi.json#/Asset"},
        "tags": {"type": "object", "additionalProperties": text},
        "names": {"type": "array", "items": text},
    }  # fmt: skip
    found = package_schema.package_schema("9.9.9")
    provider = found.pop("provider")
    assert found == {
        "name": "gcp",
        "version": "9.9.9",
        "config": {"variables": {"project": text, "region": text}},
        "types": {
            lids: {
                "type": "object", "required": ["color"],
                "properties": {
                    "color": text,
                    "hinges": {"type": "array", "items": {"$ref": f"#/types/{hinges}"}},
                },
            },
            hinges: {"type": "object", "required": ["count"],
                     "properties": {"count": {"type": "integer"}}},
        },
        "resources": {
            BOX: {
                "inputProperties": inputs, "requiredInputs": ["mode"],
                "properties": inputs | {"weight": {"type": "number"}},
                "required": ["mode", "name"],
            },
            BARE: {"inputProperties": {}, "requiredInputs": [], "properties": {}, "required": []},
        },
    }  # fmt: skip
    of_provider = provider["inputProperties"]
    kinds = {"boolean": 0, "array": 0, "object": 0, "string": 0}
    for each in of_provider.values():
        kinds[each["type"]] += 1
    assert kinds == {"boolean": 5, "array": 2, "object": 1, "string": 14}
    assert of_provider["defaultLabels"] == {"type": "object", "additionalProperties": text}
    assert of_provider["scopes"] == {"type": "array", "items": text}


def test_what_is_required_is_sorted_and_an_open_object_has_a_type_if_it_has_properties(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crate = "gcp:boxes/crate:Crate"
    rows = [
        {"name": "zone", "tf": "zone", "type": "string", "required": True},
        {"name": "age", "tf": "age", "type": "int", "required": True},
        {"name": "seal", "tf": "seal", "type": "object", "optional": True},
        {"name": "seal.wax", "tf": "wax", "type": "bool", "required": True},
        {"name": "seal.ink", "tf": "ink", "type": "bool", "required": True},
        {"name": "seal.more", "more": True},
    ]
    type_ = {"deleteBeforeReplace": False, "meta": None, "properties": rows}
    monkeypatch.setattr(schema, "_document", lambda: {"types": {crate: type_}})
    found = package_schema.package_schema("1")
    seal = "gcp:boxes/CrateSeal:CrateSeal"
    properties = {"zone": {"type": "string"}, "age": {"type": "integer"},
                  "seal": {"$ref": f"#/types/{seal}"}}  # fmt: skip
    assert found["resources"][crate] == {
        "inputProperties": properties, "requiredInputs": ["age", "zone"],
        "properties": properties, "required": ["age", "zone"],
    }  # fmt: skip
    inner = {"wax": {"type": "boolean"}, "ink": {"type": "boolean"}}
    assert found["types"] == {
        seal: {"type": "object", "properties": inner, "required": ["ink", "wax"]}
    }


def cloud(project: str, **environment: str) -> Cloud:
    found = schema.find(BOX)
    assert found is not None
    return Cloud(found, Settings(project, "r", "z"), environment)


def test_without_a_local_cloud_there_is_no_store() -> None:
    for environment in ({}, {"VT_LOCAL_HOME": ""}):
        with pytest.raises(RefusedError) as refused:
            _ = cloud("local-p", **environment).store
        assert str(refused.value) == (
            "VT_LOCAL_HOME is not set, so there is no local cloud to work on. Hint: run pulumi "
            "through `vt local up` or inside `vt local shell`"
        )


@pytest.mark.parametrize(
    ("state", "id_", "project"),
    [
        ({"project": "local-b"}, "kept", "local-b"),
        ({"project": Secret("local-b")}, "kept", "local-b"),
        ({}, "kept", "local-c"),
        ({"project": ""}, "kept", "local-c"),
        ({}, "gone", "local-a"),
    ],
)
def test_a_resource_is_in_the_project_of_its_state_of_its_record_or_of_the_provider(
    tmp_path: Path, state: Any, id_: str, project: str
) -> None:
    Store(tmp_path / "cloud.sqlite").put(BOX, "kept", "local-c", {}, {})
    own = cloud("local-a", VT_LOCAL_HOME=str(tmp_path))
    found = own.in_project_of(id_, state)
    assert found.settings == Settings(project, "r", "z")
    assert (found.type, found.environment) == (own.type, own.environment)
    assert cloud("local-a").in_project_of("kept", {}).settings.project == "local-a"


class OnTheSecond(datetime):
    """A clock at a full second."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> OnTheSecond:
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)


def test_texts_and_times_are_as_the_apis_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = {"a": "x", "b": None, "c": 7, "d": ""}
    assert [clouds.text(values, key) for key in "abcde"] == ["x", "", "7", "", ""]
    monkeypatch.setattr(clouds, "datetime", OnTheSecond)
    assert clouds.now() == "2026-01-02T03:04:05.000000Z"
