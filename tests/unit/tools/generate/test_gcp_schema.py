"""Writing the stand-in's schema anew from a plugin's package schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.generate import gcp_schema
from tools.generate.gcp_schema import Plugin, generate, render

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
