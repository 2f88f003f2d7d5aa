"""Files that the engine of BigQuery loads and exports, by what a job's configuration says."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.unit.localcloud.bigquery.conftest import Work

ID, NAME = (
    {"name": "id", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "name", "type": "STRING", "mode": "NULLABLE"},
)
JSON = "NEWLINE_DELIMITED_JSON"


def load(work: Work, config: Any, schema: Any, *files: str) -> Any:
    [said] = work.do(
        "load", config=config, schema=schema, files=files, output=work.path("out.parquet")
    )
    return said


@pytest.mark.parametrize(
    ("text", "config", "rows"),
    [
        ("1,a\n2,b\n", {}, [["1", "a"], ["2", "b"]]),
        ("id,name\n1,a\n", {"skipLeadingRows": "1"}, [["1", "a"]]),
        ("1;a\n", {"fieldDelimiter": ";"}, [["1", "a"]]),
        ("1,\n2,-\n", {}, [["1", None], ["2", "-"]]),
        ("1,-\n", {"nullMarker": "-"}, [["1", None]]),
        ('{"id": 1, "name": "a"}\n{"id": 2}\n', {"sourceFormat": JSON}, [["1", "a"], ["2", None]]),
    ],
)
def test_columns_that_are_given_are_those_of_the_file(
    work: Work, text: str, config: Any, rows: Any
) -> None:
    given = [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
    done = load(work, config, given, work.write("f", text))["done"]
    assert done["schema"] == [ID, NAME]
    assert (done["rows"], work.rows(done["schema"])) == (len(rows), rows)
    assert done["bytes"]["id"] == 8 * len(rows)


@pytest.mark.parametrize(
    ("text", "config", "rows"),
    [
        ("id,name\n1,a\n", {}, [["1", "a"]]),
        ("id,name\n1,a\n", {"skipLeadingRows": 1}, [["1", "a"]]),
        ("# of today\nid,name\n1,a\n", {"skipLeadingRows": 2}, [["1", "a"]]),
        ('{"id": 1, "name": "a"}\n', {"sourceFormat": JSON}, [["1", "a"]]),
    ],
)
def test_columns_that_are_not_given_are_found(
    work: Work, text: str, config: Any, rows: Any
) -> None:
    done = load(work, config, [], work.write("f", text))["done"]
    assert (done["schema"], work.rows(done["schema"])) == ([ID, NAME], rows)


def test_columns_of_parquet_are_joined_by_name(work: Work) -> None:
    work.query("SELECT 1 AS id, 'a' AS name", output=work.path("a.parquet"))
    work.query("SELECT 'b' AS name", output=work.path("b.parquet"))
    config = {"sourceFormat": "PARQUET"}
    done = load(work, config, [], work.path("a.parquet"), work.path("b.parquet"))["done"]
    assert (done["schema"], work.rows(done["schema"])) == ([ID, NAME], [["1", "a"], [None, "b"]])


def test_records_and_lists_are_loaded_from_json(work: Work) -> None:
    inner = [{"name": "b", "type": "FLOAT64", "mode": "REPEATED"}]
    schema = [{"name": "a", "type": "STRUCT", "fields": inner}]
    file = work.write("f", '{"a": {"b": [0.5, 1]}}\n')
    done = load(work, {"sourceFormat": JSON}, schema, file)["done"]
    field = {"name": "b", "type": "FLOAT", "mode": "REPEATED"}
    wanted = [{"name": "a", "type": "RECORD", "mode": "NULLABLE", "fields": [field]}]
    assert done == {"schema": wanted, "rows": 1, "bytes": {"a": 16}}
    assert work.rows(wanted) == [[{"f": [{"v": [{"v": "0.5"}, {"v": "1.0"}]}]}]]


@pytest.mark.parametrize(
    ("config", "schema", "text"),
    [
        ({"sourceFormat": "AVRO"}, [ID], "the local cloud loads no AVRO"),
        ({}, [ID | {"type": "GEOGRAPHY"}], "the local cloud has no columns of type GEOGRAPHY"),
    ],
)
def test_what_is_not_loaded_is_refused(work: Work, config: Any, schema: Any, text: str) -> None:
    said = load(work, config, schema, work.write("f", "1\n"))
    assert said == {"error": {"reason": "invalid", "message": text}}


def test_a_file_that_does_not_fit_says_why(work: Work) -> None:
    error = load(work, {}, [ID], work.write("f", "a\n"))["error"]
    assert error["reason"] == "invalid"
    assert error["message"].startswith("Error while reading data, error message: ")
    assert "Could not convert" in error["message"]


def export(work: Work, **config: Any) -> tuple[list[Any], Path]:
    schema = work.query("SELECT 1 AS id, 'a,b' AS name")[-1]["done"]["schema"]
    table = {"files": [work.path("out.parquet")], "schema": schema}
    said = work.do("export", config=config, table=table, output=work.path("exported"))
    return said, work.folder / "exported"


def test_exports_are_compressed(work: Work) -> None:
    said, file = export(work, compression="GZIP")
    assert (said, gzip.decompress(file.read_bytes())) == ([{"done": {}}], b'id,name\n1,"a,b"\n')


@pytest.mark.parametrize(
    ("compression", "name"), [(None, "UNCOMPRESSED"), ("NONE", "UNCOMPRESSED"), ("SNAPPY",) * 2]
)
def test_rows_are_exported_as_parquet(
    work: Work, engine_module: Any, compression: str | None, name: str
) -> None:
    given = {"compression": compression} if compression else {}
    said, file = export(work, destinationFormat="PARQUET", **given)
    assert (said, work.rows([ID, NAME], "exported")) == ([{"done": {}}], [["1", "a,b"]])
    sql = f"SELECT DISTINCT compression FROM parquet_metadata('{file}')"
    assert engine_module.duckdb.sql(sql).fetchall() == [(name,)]


def test_no_other_form_is_exported(work: Work) -> None:
    said, file = export(work, destinationFormat="AVRO")
    text = "the local cloud exports no AVRO"
    assert (said, file.exists()) == ([{"error": {"reason": "invalid", "message": text}}], False)
