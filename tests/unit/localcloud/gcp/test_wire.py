"""Requests of the engine and answers to it: settings, names, refreshes and diffs."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from localgcp.gcp import wire
from localgcp.gcp.codec import Secret
from localgcp.gcp.names import Naming
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import Property, TypeSchema

PLACE = {"GOOGLE_PROJECT": "ep", "GOOGLE_REGION": "er", "GOOGLE_ZONE": "ez"}


def type_(*props: Property, before: bool = False, meta: str | None = None) -> TypeSchema:
    return TypeSchema("gcp:x:X", {each.name: each for each in props}, None, (), before, meta)


def prop(name: str, **flags: Any) -> Property:
    return Property(name, name, "string", **{"optional": True, **flags})


@pytest.mark.parametrize(
    ("given", "environment", "settings"),
    [
        ({}, {}, Settings("", "", "", {}, True)),
        ({}, PLACE, Settings("ep", "er", "ez", {}, True)),
        ({"project": "p", "region": "r", "zone": "z"}, PLACE, Settings("p", "r", "z", {}, True)),
        ({"defaultLabels": '{"a": "b"}'}, {}, Settings(default_labels={"a": "b"})),
        ({"defaultLabels": {"a": "b"}}, {}, Settings(default_labels={"a": "b"})),
        ({"defaultLabels": ""}, {}, Settings()),
        *(({"addPulumiAttributionLabel": each}, {}, Settings(attribution=False))
          for each in (False, "false", "False")),
        ({"addPulumiAttributionLabel": "true"}, {}, Settings(attribution=True)),
    ],
)  # fmt: skip
def test_settings_are_the_providers_then_the_environments(
    given: dict[str, Any], environment: dict[str, str], settings: Settings
) -> None:
    assert wire.settings(given, environment) == settings


@pytest.mark.parametrize(
    ("mode", "name"), [(0, "propose"), (1, "enforce"), (2, "disabled"), (3, "")]
)
def test_the_stacks_rule_for_names_comes_with_the_request(mode: int, name: str) -> None:
    rule = provider_pb2.CheckRequest.AutonamingOptions(proposed_name="prod-x", mode=mode)
    request = provider_pb2.CheckRequest(randomSeed=b"s", autonaming=rule)
    assert wire.naming(request) == Naming(b"s", "prod-x", name)
    assert wire.naming(provider_pb2.CheckRequest(randomSeed=b"s")) == Naming(b"s", "", "")


def test_changes_that_are_ignored_are_taken_back() -> None:
    news = {"a": 1, "b": {"c": 2}, "d": [3], "e": 4}
    wire.ignore_changes(["a", "b.c", "d[0].x", "f"], news, {"a": 9, "b": {"c": 8}, "f": 7})
    assert news == {"a": 9, "b": {"c": 8}, "e": 4, "f": 7}


def test_a_refresh_brings_in_what_was_changed_elsewhere() -> None:
    given = type_(
        *(prop(name) for name in ("a", "b", "source", "unset")),
        prop("self", optional=False, computed=True),
        Property("block", "block", "object", optional=True, children={"c": prop("c")}),
    )
    inputs = {"a": "1", "b": Secret("2"), "source": "x", "block": {"c": "3"}, "self": "s"}
    outputs = {"a": "9", "b": "2", "source": "y", "unset": "n", "block": {"c": "8"}, "self": "t"}
    assert wire.drifted(given, inputs, outputs, Settings()) == inputs | {
        "a": "9", "block": {"c": "8"},
    }  # fmt: skip
