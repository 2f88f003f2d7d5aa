"""Properties from rows and the package's schema from properties, with types of its own."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import RefusedError
from localgcp.gcp import schema
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema

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
