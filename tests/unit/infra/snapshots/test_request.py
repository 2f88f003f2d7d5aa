"""The identity of a snapshot, its folder and its manifest; queries as text."""

from __future__ import annotations

import dataclasses
import hashlib
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


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_snapshot_is_known_by_all_that_decides_what_it_holds() -> None:
    content = {
        "asOf": "2026-11-20T00:00:00Z",
        "bucket": "acme-data",
        "format": "parquet",
        "location": "us-central1",
        "name": "clicks",
        "parameters": [["a", "int", 1], ["b", "bool", True], ["day", "str", "2026-11-20"]],
        "project": "acme-ml-dev",
        "run": 2,
        "sql": sha256("SELECT @day"),
        "stack": "dev",
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert REQUEST.request_id == sha256(text)[:20]
    assert REQUEST.prefix == f"snapshots/dev/clicks/{REQUEST.request_id}"
    assert REQUEST.uri == f"gs://acme-data/snapshots/dev/clicks/{REQUEST.request_id}"
    other = dataclasses.replace(REQUEST, max_bytes_billed=11)
    assert other.request_id == REQUEST.request_id


def test_the_time_is_sent_as_a_parameter_where_there_is_one() -> None:
    assert REQUEST.all_parameters == {**REQUEST.parameters, "as_of": "2026-11-20T00:00:00Z"}
    assert dataclasses.replace(REQUEST, as_of=None).all_parameters == REQUEST.parameters


JOB: dict[str, Any] = {
    "jobReference": {"jobId": "job-1"},
    "statistics": {
        "startTime": "1700000000000",
        "totalBytesProcessed": "5",
        "query": {"totalBytesBilled": "10485760"},
    },
}
TABLE = {"schema": {"fields": [{"name": "x", "type": "INT64"}]}, "numRows": "7"}
REFERENCE = {"projectId": "acme", "datasetId": "web", "tableId": "clicks"}
SOURCE = {"lastModifiedTime": "1700000000123", "numRows": "9"}
OBJECTS = [StoredObject("b.parquet", 3, 22, "BB=="), StoredObject("a.parquet", 4, 11, "AA==")]


def test_a_manifest_says_what_was_read_and_which_objects_hold_it() -> None:
    sources = [manifest.source_of(REFERENCE, SOURCE), manifest.source_of(REFERENCE, None)]
    built = manifest.build(REQUEST, JOB, TABLE, sources, OBJECTS)
    digest = built.pop("contentSha256")
    assert built == {
        "format": 1,
        "snapshot": {
            "project": "acme-ml-dev",
            "stack": "dev",
            "name": "clicks",
            "run": 2,
            "requestId": REQUEST.request_id,
        },
        "query": {
            "sqlSha256": sha256("SELECT @day"),
            "parameters": {"day": "2026-11-20", "b": True, "a": 1},
            "asOf": "2026-11-20T00:00:00Z",
            "location": "us-central1",
            "jobId": "job-1",
            "queriedAt": "2023-11-14T22:13:20.000Z",
            "bytesProcessed": 5,
            "bytesBilled": 10_485_760,
        },
        "sources": [
            {"table": "acme.web.clicks", "lastChanged": "2023-11-14T22:13:20.123Z", "rows": 9},
            {"table": "acme.web.clicks", "lastChanged": None, "rows": None},
        ],
        "schema": [{"name": "x", "type": "INT64"}],
        "rows": 7,
        "bytes": 7,
        "fileFormat": "parquet",
        "objects": [
            {"name": "a.parquet", "size": 4, "generation": "11", "crc32c": "AA=="},
            {"name": "b.parquet", "size": 3, "generation": "22", "crc32c": "BB=="},
        ],
    }
    text = json.dumps(built, sort_keys=True, separators=(",", ":"))
    assert digest == sha256(text)
    whole = {**built, "contentSha256": digest}
    assert manifest.parse(json.dumps(whole).encode()) == whole
    assert manifest.record_of(REQUEST, 5) == f"{REQUEST.uri}/manifest.json#5"


def test_what_a_query_without_numbers_was_billed_is_nothing() -> None:
    job = {"jobReference": {"jobId": "j"}, "statistics": {}}
    built = manifest.build(REQUEST, job, {}, [], [])
    query = built["query"]
    assert (query["queriedAt"], query["bytesProcessed"], query["bytesBilled"]) == (None, 0, 0)
    assert (built["schema"], built["rows"], built["bytes"], built["objects"]) == ([], 0, 0, [])


def test_a_table_that_changed_meanwhile_makes_no_other_export() -> None:
    def export(**changes: Any) -> str:
        sources = [{**manifest.source_of(REFERENCE, SOURCE), **changes}]
        return manifest.export_digest(manifest.build(REQUEST, JOB, TABLE, sources, OBJECTS))

    assert export() == export(rows=10) == export(lastChanged=None)
    assert export() != export(table="acme.web.views")


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
    ("sql", "plain"),
    [
        ("SELECT 1 -- one\n;", "SELECT 1"),
        ("# first\nSELECT 1", " \nSELECT 1"),
        ("SELECT /* a\nb */ 1", "SELECT  \n 1"),
        ("SELECT '-- no', \"# no\", `/* no */`", "SELECT '-- no', \"# no\", `/* no */`"),
        ("SELECT '''a\n-- b''' ; ", "SELECT '''a\n-- b'''"),
        (r"SELECT 'it\'s -- no'", r"SELECT 'it\'s -- no'"),
        ("SELECT 1;;", "SELECT 1;"),
    ],
)
def test_comments_are_left_out_and_lines_keep_their_numbers(sql: str, plain: str) -> None:
    assert statement.without_comments(sql) == plain


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        *((sql, "") for sql in (
            "SELECT 1", "select 1;", "WITH a AS (SELECT 1) SELECT 1", "FROM t |> WHERE x",
            "(SELECT 1)", "SELECT ';'", "FROM t |> AS updated",
        )),
        ("", "is empty"),
        ("-- nothing", "is empty"),
        ("SELECT 1; SELECT 2", "has several statements"),
        ("DELETE FROM t WHERE true", "is no query"),
        ("CREATE TABLE x AS SELECT 1", "is no query"),
        *((f"FROM t |> {verb} x", "is no query") for verb in (
            "CALL", "create", "DELETE", "EXPORT", "INSERT", "merge", "UPDATE",
        )),
        ("SELECT 'a", "has a text or a comment without an end"),
        ("SELECT 1 /* a", "has a text or a comment without an end"),
        ('SELECT """a', "has a text or a comment without an end"),
    ],
)  # fmt: skip
def test_a_query_is_one_that_changes_nothing(sql: str, said: str) -> None:
    assert [what for what, _ in statement.form_problems(sql)] == ([said] if said else [])


def test_parameters_and_what_never_repeats_are_found_outside_of_texts_alone() -> None:
    sql = "SELECT @Day, @@system, '@no', RAND(), current_date, session_user() -- @no GENERATE_UUID"
    assert statement.parameters_in(sql) == {"day"}
    assert statement.volatile_in(sql) == ["CURRENT_DATE", "RAND", "SESSION_USER"]
    assert statement.volatile_in("SELECT brand, randomly, current_dates") == []


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
