"""The stand-in updates and replaces for each change what the official plugin 9.35.0 does."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from localgcp.gcp import schema
from localgcp.gcp.codec import decode
from localgcp.gcp.schema import Property
from tests.unit.localcloud.gcp.harness import FIXTURES, Plugin, row_named

# The measurement cut its longest lines at 120 characters; these are the whole values.
CUT = {
    '{"specific_reservation": {"count": 4,': {
        "specific_reservation": {
            "count": 4,
            "instance_properties": {
                "machine_type": "a2-highgpu-1g",
                "guest_accelerators": [
                    {"accelerator_type": "nvidia-tesla-a100", "accelerator_count": 1}
                ],
            },
        }
    },
    '{"share_settings": {"share_type": "SPECIFIC_PROJECTS"': {
        "share_settings": {
            "share_type": "SPECIFIC_PROJECTS",
            "project_maps": [
                {"id": "svc1", "project_id": "svc1"},
                {"id": "svc2", "project_id": "svc2"},
            ],
        }
    },
}


@dataclass
class Expected:
    """What one resource of the probe does after a change."""

    name: str
    op: str
    reasons: list[str]
    diff: dict[str, str]


@dataclass
class Mutation:
    """One change of one resource, and everything that follows."""

    name: str
    change: dict[str, Any]
    expected: list[Expected] = field(default_factory=list)


def mutations() -> list[Mutation]:
    found: list[Mutation] = []
    for line in (FIXTURES / "gcp-mutations.txt").read_text(encoding="utf-8").splitlines():
        head = re.match(r"(\S+) ({.*)", line)
        effect = re.match(r"    (\w+) (\S+) reasons=(\[.*\]) diff=(.*)", line)
        if effect:
            op, name, reasons, diff = effect.groups()
            parsed = ast.literal_eval(reasons), ast.literal_eval(diff)
            found[-1].expected.append(Expected(name, op, *parsed))
        elif head:
            found.append(Mutation(head[1], _change(head[2])))
    return found


def _change(text: str) -> dict[str, Any]:
    whole = next((value for cut, value in CUT.items() if text.startswith(cut)), None)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        assert whole is not None, text
        return whole


MUTATIONS = mutations()
IDS = [f"{m.name}-{'-'.join(m.change)}-{i}" for i, m in enumerate(MUTATIONS)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=IDS)
def test_a_change_updates_or_replaces_as_measured(abroad: Plugin, mutation: Mutation) -> None:
    row = row_named(mutation.name)
    news = _changed(abroad, row, mutation.change)

    answer = abroad.diff(row["type"], row["id"], news, row["outputs"])

    own = next((e for e in mutation.expected if e.name == mutation.name), None)
    assert _kinds(answer) == (own.diff if own else {})
    assert list(answer.replaces) == (own.reasons if own else [])
    assert (answer.changes == answer.DIFF_SOME) == bool(own)


def _changed(plugin: Plugin, row: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    type_ = schema.find(row["type"])
    assert type_ is not None
    made = row["inputDefaults"]
    olds = {**row["inputs"], "__defaults": made}
    given = {k: v for k, v in row["inputs"].items() if k not in made}
    for key, value in change.items():
        name = _camel(key)
        given[name] = _camel_inside(type_.properties[name], value)
    answer = plugin.check(row["type"], row["name"], given, olds)
    assert not answer.failures
    return decode(answer.inputs)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _camel_inside(prop: Property, value: Any) -> Any:
    if isinstance(value, list):
        return [_camel_inside(prop, item) for item in value]
    if not isinstance(value, dict) or prop.type.startswith("map<"):
        return value
    return {
        _camel(k): _camel_inside(prop.children[_camel(k)], v) if _camel(k) in prop.children else v
        for k, v in ((_camel(k), v) for k, v in value.items())
    }


def _kinds(answer: provider_pb2.DiffResponse) -> dict[str, str]:
    names = provider_pb2.PropertyDiff.Kind.Name
    return {
        path: names(change.kind).lower().replace("_", "-")
        for path, change in answer.detailedDiff.items()
    }
