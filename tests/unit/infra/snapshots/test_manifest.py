"""Manifests and queries as text: what is refused before anything relies on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import request
from vertex_training.snapshots import manifest
from vertex_training.snapshots.manifest import StoredObject
from vertex_training.snapshots.request import form_problems, reads_as_of

JOB: dict[str, Any] = {
    "jobReference": {"jobId": "job-1"},
    "statistics": {
        "startTime": "1700000000000",
        "totalBytesProcessed": "5",
        "query": {"totalBytesBilled": "10485760"},
    },
}
TABLE = {"schema": {"fields": [{"name": "x", "type": "INT64"}]}, "numRows": "7"}
OBJECTS = [StoredObject("b.parquet", 3, 22, "BB=="), StoredObject("a.parquet", 4, 11, "AA==")]


def whole(**changes: Any) -> bytes:
    wanted: Any = request()
    built = {**manifest.build(wanted, JOB, TABLE, [], OBJECTS), **changes}
    if "contentSha256" not in changes:
        built["contentSha256"] = manifest.content_digest(built)
    return json.dumps(built).encode()


def nested(levels: int) -> bytes:
    """Return a manifest whose schema has so many lists in one another."""
    schema: list[Any] = ["a"]
    for _ in range(levels - 1):
        schema = [schema]
    return whole(schema=schema)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{}", b"[]", b"null", b"[" * 100_000),
        whole(format=2),
        whole(contentSha256="0" * 64),
        whole(objects=[1]),
        whole(sources=["x"]),
        whole(snapshot="x"),
        whole(query=None),
        whole(objects=None),
        nested(100),
        nested(600),
    ],
)
def test_text_that_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own errors are some, too
        manifest.parse(text)


def test_manifest_has_the_sum_of_its_objects() -> None:
    parsed = manifest.parse(nested(99))
    assert (parsed["rows"], parsed["bytes"], len(parsed["objects"])) == (7, 7, 2)


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("", "is empty"),
        ("-- SELECT 1", "is empty"),
        ("DELETE FROM t WHERE true", "is not a query, and a snapshot cannot change tables"),
        ("SELECT 1 -- one\r; DROP TABLE t", "has several statements"),
        (
            "FROM t |> EXPORT DATA OPTIONS(uri='gs://x/*')",
            "writes data in a pipe operator, but a snapshot cannot change tables",
        ),
        ("SELECT 1 /* never closed", "has an unterminated text or comment"),
    ],
)
def test_text_that_is_not_one_query_is_refused(sql: str, wrong: str) -> None:
    assert [what for what, _ in form_problems(sql)] == [wrong]


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("from t for system_time\n  as  of -- then\n @as_of where x", True),
        ("FROM t FOR SYSTEM_TIME AS OF @as_of_day", False),
        ("FROM t WHERE x = @as_of", False),
    ],
)
def test_table_is_read_as_of_the_time_of_the_snapshot(sql: str, reads: bool) -> None:
    assert reads_as_of(sql) is reads
