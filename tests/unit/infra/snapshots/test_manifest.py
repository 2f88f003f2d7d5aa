"""A manifest, field by field: what later runs and readers of other teams rely on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import CLICKS, request
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.manifest import StoredObject

WANTED: Any = request()
QUERY = {
    "jobReference": {"jobId": "query-1"},
    "statistics": {
        "startTime": "1700000000000",
        "totalBytesProcessed": "7",
        "query": {"totalBytesBilled": "10485760"},
    },
}
FIELDS = [{"name": "age", "type": "FLOAT"}]
RESULT = {"numRows": "891", "schema": {"fields": FIELDS}}
OBJECTS = [StoredObject("b", 36, 102, "BBBBBB=="), StoredObject("a", 30, 101, "AAAAAA==")]
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


def test_a_manifest_has_the_query_its_sources_and_every_object() -> None:
    made = manifests.build(WANTED, QUERY, RESULT, WHOLE["sources"], OBJECTS)
    assert made == {**WHOLE, "contentSha256": digest(WHOLE)}
    assert manifests.parse(manifests.canonical(made).encode()) == made


def test_what_bigquery_leaves_out_is_nothing() -> None:
    query = {"jobReference": {"jobId": "q"}, "statistics": {}}
    made = manifests.build(WANTED, query, {}, [], [])
    assert (made["rows"], made["bytes"], made["schema"], made["objects"]) == (0, 0, [], [])
    figures = ("queriedAt", "bytesProcessed", "bytesBilled")
    assert [made["query"][key] for key in figures] == [None, 0, 0]


@pytest.mark.parametrize(
    "found",
    [
        {**WHOLE, "contentSha256": digest({**WHOLE, "rows": 1})},
        WHOLE,
        {**WHOLE, "format": 2, "contentSha256": digest({**WHOLE, "format": 2})},
        {**WHOLE, "objects": ["a"], "contentSha256": digest({**WHOLE, "objects": ["a"]})},
        {**WHOLE, "query": 5, "contentSha256": digest({**WHOLE, "query": 5})},
        [],
        None,
    ],
)
def test_another_text_is_no_manifest(found: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        manifests.parse(json.dumps(found).encode())


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


def test_what_a_source_was_like_when_somebody_looked_makes_no_other_export() -> None:
    one = manifests.build(WANTED, QUERY, RESULT, WHOLE["sources"], OBJECTS)
    later = [{"table": "acme.web.clicks", "lastChanged": "later", "rows": 6}]
    again = manifests.build(WANTED, QUERY, RESULT, later, OBJECTS)
    assert one["contentSha256"] != again["contentSha256"]
    assert manifests.export_digest(one) == manifests.export_digest(again)
    other = manifests.build(WANTED, QUERY, RESULT, [{"table": "acme.web.other"}], OBJECTS)
    assert manifests.export_digest(one) != manifests.export_digest(other)


def test_a_record_names_the_manifest_by_its_generation() -> None:
    assert manifests.record_of(WANTED, 7) == f"{WANTED.uri}/manifest.json#7"
    assert manifests.source_of(CLICKS, None)["table"] == "acme.web.clicks"
