"""A manifest, field by field: what later runs and readers of other teams rely on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import CLICKS, request
from vertex_training.snapshots import manifest as manifests

WANTED: Any = request()
FIELDS = [{"name": "age", "type": "FLOAT"}]
WHOLE: dict[str, Any] = {
    "format": 1,
    "snapshot": {
        "project": "local-training",
        "stack": "local",
        "name": "clicks",
        "run": 1,
        "requestId": WANTED.request_id,
    },
    "query": {
        "sqlSha256": WANTED.sql_digest,
        "parameters": {"day": "2026-11-20", "n": 3, "x": 0.5, "b": True},
        "asOf": None,
        "location": "us-central1",
        "jobId": "query-1",
        "queriedAt": "2023-11-14T22:13:20.000Z",
        "bytesProcessed": 7,
        "bytesBilled": 10485760,
    },
    "sources": [{"table": "acme.web.clicks", "lastChanged": "x", "rows": 5}],
    "schema": FIELDS,
    "rows": 891,
    "bytes": 66,
    "fileFormat": "parquet",
    "objects": [
        {"name": "a", "size": 30, "generation": "101", "crc32c": "AAAAAA=="},
        {"name": "b", "size": 36, "generation": "102", "crc32c": "BBBBBB=="},
    ],
}


def digest(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def nested(levels: int) -> bytes:
    """A manifest whose schema has so many lists in one another."""
    schema: list[Any] = ["a"]
    for _ in range(levels - 1):
        schema = [schema]
    found = {**WHOLE, "schema": schema}
    return json.dumps({**found, "contentSha256": digest(found)}).encode()


def test_a_manifest_that_nobody_could_print_is_none() -> None:
    assert manifests.parse(nested(99))["rows"] == WHOLE["rows"]
    for levels in (100, 600):
        with pytest.raises(ValueError, match="too deeply"):
            manifests.parse(nested(levels))


def test_a_record_names_the_manifest_by_its_generation() -> None:
    assert manifests.record_of(WANTED, 7) == f"{WANTED.uri}/manifest.json#7"
    assert manifests.source_of(CLICKS, None)["table"] == "acme.web.clicks"
