"""The schema that other languages read, and how the plugin starts."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, TypedDict

import pytest
from pulumi.errors import InputPropertiesError

from vertex_training import host


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads(host.Host().schema or "")


def test_schema_describes_the_package(schema: dict[str, Any]) -> None:
    own = ("name", "displayName", "namespace", "description", "license", "keywords")
    assert {key: schema[key] for key in own} == {
        "name": "vertex-training",
        "displayName": "vertex-training",
        "namespace": "vertextraining",
        "description": "Vertex AI training jobs, and everything they need, as one Pulumi program",
        "license": "Apache-2.0",
        "keywords": ["google-cloud", "machine-learning", "pulumi", "training", "vertex-ai"],
    }


def test_choices_are_enums_named_after_their_field(schema: dict[str, Any]) -> None:
    enums = {
        name.rpartition(":")[2]: {each["name"]: each["value"] for each in found["enum"]}
        for name, found in schema["types"].items()
        if "enum" in found
    }
    wanted = ("Strategy", "Mode", "Wait", "OnDelete", "ConnectionPreference")
    assert {name: enums[name] for name in wanted} == {
        "Strategy": {"Standard": "STANDARD", "Spot": "SPOT", "FlexStart": "FLEX_START"},
        "Mode": {"None": "none", "Peering": "peering", "Psc": "psc"},
        "Wait": {"Running": "running", "Succeeded": "succeeded"},
        "OnDelete": {"Keep": "keep", "Delete": "delete"},
        "ConnectionPreference": {
            "AcceptAutomatic": "ACCEPT_AUTOMATIC",
            "AcceptManual": "ACCEPT_MANUAL",
        },
    }
    job = schema["resources"]["vertex-training:index:TrainingJob"]["inputProperties"]
    assert job["wait"]["$ref"] == "#/types/vertex-training:index:Wait"
    assert schema["types"]["vertex-training:index:Wait"]["type"] == "string"


def test_fields_that_a_base_declares_have_their_texts(schema: dict[str, Any]) -> None:
    for component in schema["resources"].values():
        for name, found in component["inputProperties"].items():
            assert found.get("description"), name
    job = schema["resources"]["vertex-training:index:TrainingJob"]
    assert "controlBucket" in job["requiredInputs"]
    assert "project" not in job["requiredInputs"]


class Words(TypedDict):
    """Two fields, and no file that has them."""

    color: Literal["red", "dark-blue"]
    size: int


def test_fields_of_one_name_have_the_same_choices() -> None:
    analyzer = host._Analyzer("acme")
    first = analyzer.analyze_property(Literal["red"], Words, "color", optional=True)
    assert (first.ref, first.optional) == ("#/types/acme:index:Color", True)
    again = analyzer.analyze_property(Literal["red"], Words, "color")
    assert (again.ref, again.optional) == ("#/types/acme:index:Color", False)
    with pytest.raises(ValueError, match=r"^Words\.color: another field of this name has other va"):
        analyzer.analyze_property(Literal["blue"], Words, "color")


def test_urn_of_a_component_waits_for_its_jobs() -> None:
    assert host._urn_if_reached(["urn", True, True]) == "urn"
    assert host._urn_if_reached(["urn"]) == "urn"
    with pytest.raises(InputPropertiesError) as raised:
        host._urn_if_reached(["urn", True, False])
    assert (raised.value.message, raised.value.errors) == (
        *("a job did not get where its `wait` says", []),
    )


def test_the_plugin_serves_the_engine_and_refuses_others_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(host, "guard_servers", lambda: done.append("guarded"))
    monkeypatch.setattr(host.pulumi.provider, "main", lambda *given: done.append(given))
    monkeypatch.setattr(host, "Host", lambda: "components")
    monkeypatch.setattr(sys, "argv", ["plugin", "127.0.0.1:1"])
    host.main()
    assert done == ["guarded", ("components", ["127.0.0.1:1"])]


def test_plugin_without_an_engine_prints_its_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/pulumi-resource-vertex-training"])
    with pytest.raises(SystemExit) as ended:
        host.main()
    assert ended.value.code == (
        "pulumi-resource-vertex-training is a plugin, which pulumi starts: "
        'pulumi package add "$(command -v pulumi-resource-vertex-training)"'
    )
