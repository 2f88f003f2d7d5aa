"""Writing the stand-in's schema anew from a plugin's package schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tools.generate import gcp_schema
from tools.generate.gcp_schema import Plugin, Row, generate, render

TODAY: dict[str, Any] = json.loads(gcp_schema.TARGET.read_text(encoding="utf-8"))
BUCKET = "gcp:storage/bucket:Bucket"
GONE = "gcp:old/thing:Thing"
OLD = {
    "source": "schema of pulumi-resource-gcp 9; `unset` was measured",
    "measured": "2026-11-21",
    "documented": [],
    "types": {
        BUCKET: {
            "idFormat": "{{name}}",
            "deleteBeforeReplace": False,
            "meta": None,
            "properties": [
                {"name": "name", "tf": "name", "type": "string", "required": True,
                 "forceNew": True, "autoName": True},
                {"name": "rules", "tf": "rule", "type": "set<object>", "optional": True,
                 "unset": []},
                {"name": "rules[].action", "tf": "action", "type": "string", "required": True,
                 "forceNew": True, "values": ["KEEP"]},
                {"name": "rules[].state", "tf": "state", "type": "string", "computed": True},
                {"name": "rules[].filter", "tf": "filter", "type": "object", "optional": True},
                {"name": "rules[].filter.*", "more": True},
                {"name": "size", "tf": "size", "type": "int", "optional": True, "default": 3,
                 "exactlyOneOf": ["size", "rule"]},
                {"name": "zone", "tf": "zone", "type": "string", "optional": True,
                 "computed": True},
                {"name": "former", "tf": "former", "type": "bool", "optional": True},
                {"name": "url", "tf": "url", "type": "string", "computed": True},
            ],
        },
        GONE: {"deleteBeforeReplace": False, "meta": None, "properties": []},
    },
}  # fmt: skip
#: A package schema as ``pulumi package get-schema`` prints it, with what differs from ``OLD``:
#: ``size`` replaces, ``former`` is gone, and six properties are new.
PACKAGE: dict[str, Any] = {
    "name": "gcp",
    "version": "10.0.0",
    "types": {
        "gcp:storage/BucketRule:BucketRule": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "What is done."},
                "filter": {"$ref": "#/types/gcp:storage%2FBucketFilter:BucketFilter"},
                "state": {"type": "string"},
            },
            "required": ["action"],
        },
        "gcp:storage/BucketFilter:BucketFilter": {
            "type": "object",
            "properties": {"prefix": {"type": "string"}},
        },
        "gcp:storage/Tier:Tier": {
            "type": "string",
            "enum": [{"name": "Hot", "value": "HOT"}, {"name": "Cold", "value": "COLD"}],
        },
    },
    "resources": {
        BUCKET: {
            "inputProperties": {
                "name": {"type": "string", "willReplaceOnChanges": True},
                "rules": {
                    "type": "array",
                    "items": {"$ref": "#/types/gcp:storage%2FBucketRule:BucketRule"},
                },
                "size": {"type": "integer", "willReplaceOnChanges": True},
                "source": {"$ref": "pulumi.json#/Asset"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "tier": {"$ref": "#/types/gcp:storage%2FTier:Tier", "default": "HOT"},
                "token": {"type": "string", "secret": True},
                "speed": {"type": "number"},
                "zone": {"type": "string"},
            },
            "requiredInputs": ["token"],
            "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "name": {"type": "string", "willReplaceOnChanges": True},
                "size": {"type": "integer", "willReplaceOnChanges": True},
                "speed": {"type": "number"},
                "url": {"type": "string"},
                "zone": {"type": "string"},
            },
            "required": ["name", "size", "speed", "url", "zone", "labels"],
        }
    },
}


def test_a_type_that_the_plugin_lacks_is_kept_and_reported() -> None:
    document, report = generate(Plugin(PACKAGE), OLD)
    assert document["types"][GONE] == OLD["types"][GONE]
    assert any(line.startswith(f"{GONE}: kept as it is") for line in report.lines)


def spec_of(row: Row, rows: list[Row], types: dict[str, Any], token: str) -> dict[str, Any]:
    """A property in a package schema; the object types in it are added to ``types``."""
    outer, _, inner = row["type"].rstrip(">").partition("<")
    kind = inner or outer
    value: dict[str, Any] = {"type": {"bool": "boolean", "int": "integer"}.get(kind, kind)}
    if kind == "asset":
        value = {"$ref": "pulumi.json#/Asset"}
    if kind == "object":
        name = f"{token}:{row['name']}"
        prefix = row["name"] + ("[]." if inner else ".")
        below = [r for r in rows if r["name"].startswith(prefix) and "tf" in r]
        below = [r for r in below if "." not in r["name"].removeprefix(prefix)]
        value = {"$ref": f"#/types/{quote(name, safe=':')}"}
        types[name] = {
            "properties": {
                r["name"].removeprefix(prefix): spec_of(r, rows, types, token) for r in below
            },
            "required": [r["name"].removeprefix(prefix) for r in below if r.get("required")],
        }
    if outer in ("list", "set"):
        value = {"type": "array", "items": value}
    if outer == "map":
        value = {"type": "object", "additionalProperties": value}
    if "pulumiDefault" in row:
        value["default"] = row["pulumiDefault"]
    flags = {"secret": "sensitive", "willReplaceOnChanges": "forceNew"}
    return value | {theirs: True for theirs, ours in flags.items() if row.get(ours)}


def package_of(document: dict[str, Any]) -> dict[str, Any]:
    """The package schema of a plugin whose properties are those of ``document``."""
    types: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for token, content in document["types"].items():
        rows = content["properties"]
        top = [row for row in rows if "." not in row["name"]]
        specs = {row["name"]: spec_of(row, rows, types, token) for row in top}
        specs.pop("id", None)  # every resource has one, so that a package schema lists none
        inputs = [row for row in top if row.get("required") or row.get("optional")]
        required = [row for row in inputs if row.get("required") and not row.get("autoName")]
        sure = [r for r in top if not r.get("optional") or r.get("computed") or "default" in r]
        resources[token] = {
            "inputProperties": {row["name"]: specs[row["name"]] for row in inputs},
            "requiredInputs": [row["name"] for row in required],
            "properties": specs,
            "required": [row["name"] for row in sure],
        }
    return {"version": "9.35.0", "types": types, "resources": resources}


def test_a_plugin_that_says_the_same_changes_no_property() -> None:
    document, report = generate(Plugin(package_of(TODAY)), TODAY)
    assert report.lines == []
    assert document["types"] == TODAY["types"]


def test_the_text_has_all_of_the_document() -> None:
    assert json.loads(render(TODAY)) == TODAY


def test_check_prints_the_differences_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, target = tmp_path / "package.json", tmp_path / "schema.json"
    schema.write_text(json.dumps(PACKAGE))
    target.write_text(json.dumps(OLD))
    monkeypatch.setattr(gcp_schema, "TARGET", target)
    assert gcp_schema.main([str(schema), "--check"]) == 1
    printed = capsys.readouterr().out
    assert '-  {"name":"former"' in printed
    assert f"note: {BUCKET} former: gone" in printed
    assert json.loads(target.read_text()) == OLD
    assert gcp_schema.main([str(schema)]) == 0
    assert gcp_schema.main([str(schema), "--check"]) == 0
