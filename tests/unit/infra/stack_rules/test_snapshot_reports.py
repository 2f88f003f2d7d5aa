"""Rules of snapshots: path, what is wrong, value and hint, and what is probably not meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import snapshots

SQL = b"SELECT * FROM t WHERE day = @day"
AS_OF = b"SELECT * FROM t FOR SYSTEM_TIME AS OF @as_of WHERE day = @day"
TOKEN = "ghp_" + "a1B2" * 9
TIME = "2026-11-20T00:00:00Z"
BUCKET = "this stack has no such bucket"
THEN = ("no table of the query is read as of then", "FROM table FOR SYSTEM_TIME AS OF @as_of")
OWN = "give snapshots a bucket of their own"


def settings(root: Path, sql: bytes, given: dict[str, Any], **more: Any) -> Any:
    (root / "c.sql").write_bytes(sql)
    snapshot = {"query": "c.sql", "parameters": {"day": "x"}, "maxBytesBilled": 10**9} | given
    return unjudged(**{"buckets": {"data": {}}, "snapshots": {"c": snapshot}} | more)


@pytest.mark.parametrize(
    ("sql", "given", "found"),
    [
        (SQL, {"bucket": "dta"}, [("bucket", BUCKET, "dta", "did you mean 'data'?")]),
        (AS_OF, {"asOf": "2999-01-01T00:00:00Z"}, [
            ("asOf", "is in the future", "2999-01-01T00:00:00Z", "a time that was")]),
        (SQL, {"asOf": TIME}, [("asOf", THEN[0], TIME, THEN[1])]),
        (AS_OF, {}, [("query", "uses @as_of", "c.sql", "give asOf")]),
        (SQL, {"parameters": {"dya": "x"}}, [
            ("query", "uses @day, which parameters do not give", "c.sql", "parameters: {day: …}"),
            ("parameters.dya", "the query has no @dya", "", "did you mean 'day'?")]),
        (SQL, {"parameters": {"day": "x", "api_token": TOKEN}}, [
            ("parameters.api_token", "looks like a secret", "",
             "everybody who reads the stack's state can read it: join a table that has it"),
            ("parameters.api_token", "the query has no @api_token", "", "known here: day")]),
        (b"DELETE FROM t WHERE day = @day", {}, [
            ("query", "is no query", "c.sql",
             "begin with SELECT, WITH or FROM: a snapshot changes no table")]),
        (b"SELECT @day, 1\n, '%s'" % TOKEN.encode(), {}, [
            ("query", "line 2 looks like a secret (github-token)", "",
             "remove it, or allowedSecrets: {c.sql:2: reason}")]),
        # What cannot be read is not judged any further.
        (SQL, {"query": "none.sql"}, [
            ("query", "no such file", "none.sql", "paths start at the folder of Pulumi.yaml")]),
        (b"DELETE \xff", {}, [("query", "is no UTF-8 text", "c.sql", "save it as UTF-8")]),
        (SQL.ljust(1_000_001), {}, [
            ("query", "has more than 1 MB", "c.sql", "BigQuery takes no more")]),
    ],
)  # fmt: skip
def test_a_snapshot_is_one_query_with_its_parameters_in_a_bucket_of_the_stack(
    tmp_path: Path, sql: bytes, given: dict[str, Any], found: list[tuple[str, ...]]
) -> None:
    expected = [(f"snapshots.c.{path}", *row) for path, *row in found]
    assert rows(snapshots.problems(settings(tmp_path, sql, given), tmp_path)) == expected


LEAST = "BigQuery bills 10 MiB or more for a table, and will refuse the query"


@pytest.mark.parametrize(
    ("sql", "given", "more", "found"),
    [
        (SQL, {"maxBytesBilled": 10_485_760}, {}, []),
        (SQL, {"maxBytesBilled": 10_485_759}, {}, [
            ("maxBytesBilled", LEAST, "10485759", "10485760 or more")]),
        (b"SELECT RAND(), CURRENT_DATE(), 'rand()', @day", {}, {}, [
            ("query", "gives another result each time: CURRENT_DATE, RAND", "c.sql",
             "give a parameter its place")]),
        (SQL, {}, {
            "buckets": {"data": {"deleteAfterDays": 3}, "other": {"deleteAfterDays": 1}},
            "serviceAccounts": {"a": {"writes": ["other", "data"]}, "b": {"reads": ["data"]},
                                "c": {"writes": ["data"]}}}, [
            ("bucket", "jobs as a, c can replace its files", "data", OWN),
            ("bucket", "its files are deleted after 3 days", "data", OWN)]),
    ],
)  # fmt: skip
def test_what_gives_another_result_or_does_not_stay_is_a_warning(
    tmp_path: Path, sql: bytes, given: dict[str, Any], more: dict[str, Any], found: Any
) -> None:
    warned = list(snapshots.warnings(settings(tmp_path, sql, given, **more), tmp_path))
    assert rows(warned) == [(f"snapshots.c.{path}", *row) for path, *row in found]
    assert {problem.level for problem in warned} <= {"warning"}
