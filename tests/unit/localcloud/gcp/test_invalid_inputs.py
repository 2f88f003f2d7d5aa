"""The stand-in refuses in Check what the official plugin 9.35.0 refuses, in the same words."""

from __future__ import annotations

import importlib
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from pulumi import _types

from localgcp.gcp import check, schema
from localgcp.gcp.schema import Property
from tests.unit.localcloud.gcp.harness import FIXTURES, Plugin

NETWORK = "gcp:compute/network:Network"
DATA = yaml.safe_load(Path(__file__).with_name("invalid_inputs.yaml").read_text("utf-8"))
CASES, ELSEWHERE = DATA["cases"], DATA["elsewhere"]


def measured() -> dict[str, list[str]]:
    """Messages of each case (none: the plugin let it pass)."""
    cases: dict[str, list[str]] = {}
    name = ""
    for line in (FIXTURES / "gcp-invalid-inputs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            name = line.split()[1]
            cases[name] = []
        elif "' has a problem: " in line:
            cases[name].append(line.partition("' has a problem: ")[2])
    return cases


MEASURED = measured()


def test_every_measured_case_is_tested_or_has_a_reason() -> None:
    assert set(MEASURED) == set(CASES) | set(ELSEWHERE)


@pytest.mark.parametrize("case", CASES)
def test_check_says_what_the_official_plugin_says(abroad: Plugin, case: str) -> None:
    token, inputs = CASES[case]

    answer = abroad.check(f"gcp:{token}", "x", inputs)

    # The official plugin walks its properties in no particular order.
    assert sorted(f.reason for f in answer.failures) == sorted(MEASURED[case])
    # A property would make the engine print its value, even a secret one.
    assert {f.property for f in answer.failures} <= {""}


def test_a_name_that_cannot_be_made_short_enough_fails_in_the_plugins_words(
    abroad: Plugin,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        abroad.check(NETWORK, "n" * 63, {})

    assert caught.value.details() == (
        f"could not make instance of '{NETWORK}': name '{'n' * 63}-' plus 7 random chars is "
        "longer than maximum length 63"
    )


@pytest.mark.parametrize("table", DATA["documented"], ids=lambda table: table["type"])
def test_create_and_update_refuse_what_the_documentation_refuses(
    local: Plugin, table: dict[str, Any]
) -> None:
    token, right = f"gcp:{table['type']}", table["right"]
    local.enable("aiplatform", "billingbudgets", "compute", "logging", "monitoring")
    id_, outputs = local.create(token, right)
    for change, text in table["wrong"]:
        inputs = local.checked(token, "x", {**right, **change})
        with pytest.raises(grpc.RpcError) as created:
            local.create_unchecked(token, {**inputs, "name": inputs.get("name", "other")})
        with pytest.raises(grpc.RpcError) as updated:
            local.update(token, id_, inputs, outputs)
        assert text in str(created.value.details()), change
        assert text in str(updated.value.details()), change


#: Inputs of a machine that no component sets.
OF_INSTANCES = {
    *("advancedMachineFeatures", "attachedDisks", "confidentialInstanceConfig", "deletionPolicy"),
    *("enableDisplay", "eraseWindowsVssSignature", "instanceEncryptionKey"),
    *("keyRevocationActionType", "networkPerformanceConfig", "params", "partnerMetadata"),
    *("resourcePolicies", "scratchDisks", "workloadIdentityConfig"),
}


def differing_names(kind: type, properties: Mapping[str, Property], at: str) -> Iterator[str]:
    """Yield paths of inputs that the SDK or the stand-in has and the other does not."""
    names = {*_types.input_type_py_to_pulumi_names(kind).values()}
    hints = _types.input_type_types(kind)
    ours = {name for name, prop in properties.items() if prop.input}
    yield from (f"{at}{name}" for name in (names - properties.keys()) | (ours - names))
    for name in ours & hints.keys():
        hint, prop = hints[name], properties[name]
        while typing.get_args(hint):
            hint = typing.get_args(hint)[0 if typing.get_origin(hint) is not dict else 1]
        if _types.is_input_type(hint) and not prop.open:
            yield from differing_names(hint, prop.children, f"{at}{name}.")


@pytest.mark.parametrize("token", schema.tokens())
def test_each_type_takes_the_inputs_of_the_official_sdk(token: str) -> None:
    module, name = token.split(":")[1].partition("/")[0].lower(), token.rpartition(":")[2]
    resource = getattr(importlib.import_module(f"pulumi_gcp.{module}"), name)
    kind = vars(sys.modules[resource.__module__])[f"{name}Args"]
    found = schema.find(token)
    assert found is not None
    missing = {*differing_names(kind, found.properties, "")}
    if name == "Instance":
        missing = {path for path in missing if "." not in path} - OF_INSTANCES
    assert missing == set()


@pytest.mark.parametrize("name", DATA["rules"])
def test_bounds_are_where_the_plugin_has_them(name: str) -> None:
    rule, values = getattr(check, name), DATA["rules"][name]
    assert [value for value in values["right"] if rule(value) is not None] == []
    assert [value for value in values["wrong"] if rule(value) is None] == []
