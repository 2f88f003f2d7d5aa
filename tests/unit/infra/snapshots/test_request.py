"""The identity of a snapshot, its folder and its manifest; queries as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vertex_training.snapshots import manifest, statement
from vertex_training.snapshots.manifest import StoredObject
from vertex_training.snapshots.request import SnapshotRequest

REQUEST = SnapshotRequest(
    project="acme-ml-dev",
    stack="dev",
    name="clicks",
    run=2,
    location="us-central1",
    bucket="acme-data",
    sql="SELECT  @day\n",
    parameters={"day": "2026-11-20", "b": True, "a": 1},
    as_of="2026-11-20T00:00:00Z",
    format="parquet",
    max_bytes_billed=10,
)


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
    built = {**manifest.build(REQUEST, JOB, TABLE, [], OBJECTS), **changes}
    if "contentSha256" not in changes:
        built["contentSha256"] = manifest.content_digest(built)
    return json.dumps(built).encode()


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
    ],
)
def test_what_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own errors are some, too
        manifest.parse(text)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("FROM t FOR SYSTEM_TIME AS OF @as_of", True),
        ("from t for system_time\n  as  of -- then\n @as_of where x", True),
        ("FROM t FOR SYSTEM_TIME AS OF @as_of_day", False),
        ("FROM t WHERE x = @as_of", False),
    ],
)
def test_a_table_is_read_as_of_the_time_that_is_given(sql: str, reads: bool) -> None:
    assert statement.reads_as_of(sql) is reads
