"""Queries of BigQuery as the engine runs them: which tables they read, and what comes of them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.localcloud.bigquery.conftest import Work

#: Rows of the tables below.
CASES = yaml.safe_load((Path(__file__).parents[3] / "corpus/services/bigquery.yaml").read_text())[
    "cases"
]


def field(name: str, kind: str = "INTEGER", **more: Any) -> dict[str, Any]:
    return {"name": name, "mode": "NULLABLE", "type": kind, **more}


SCHEMA = [field("id"), field("Name", "STRING")]


@pytest.fixture
def tables(work: Work) -> Work:
    """With the tables ``t`` and ``u``, which have a row, and ``e``, which has none."""
    work.query("SELECT 7 AS id, 'x' AS Name", output=work.path("rows.parquet"))
    stored = {"files": [work.path("rows.parquet")], "schema": SCHEMA}
    work.tables.update(t=stored, u=stored, e={"files": [], "schema": SCHEMA})
    return work


def place(table: str, dataset: str = "d", as_of: int | None = None) -> dict[str, Any]:
    return {"projectId": "p", "datasetId": dataset, "tableId": table, "asOf": as_of}


ID, BOTH = ["id"], ["Name", "id"]


@pytest.mark.parametrize(("sql", "named", "read", "rows"), CASES["tables-and-columns"])
def test_a_query_names_its_tables_and_the_columns_that_it_reads(
    tables: Work, sql: str, named: Any, read: Any, rows: Any
) -> None:
    asked, weighed, done = tables.query(sql)
    assert (asked, weighed) == ({"tables": named}, {"read": read})
    assert tables.rows(done["done"]["schema"]) == rows
    assert done["done"]["rows"] == len(rows)


def test_a_dry_run_has_a_schema_and_writes_nothing(tables: Work) -> None:
    said = tables.query("SELECT id FROM d.t", dryRun=True, dataset=None, output="")
    assert said == [{"tables": [place("t")]}, {"read": [ID]}, {"done": {"schema": [field("id")]}}]
    assert sorted(each.name for each in tables.folder.iterdir()) == ["rows.parquet"]


@pytest.mark.parametrize(("sql", "text"), CASES["refused"])
def test_what_is_no_query_here_is_refused(tables: Work, sql: str, text: str) -> None:
    assert tables.error(sql) == ("invalidQuery", text)


def test_what_the_database_refuses_is_a_wrong_query(tables: Work) -> None:
    reason, text = tables.error("SELECT nosuch FROM t")
    assert (reason, text.partition("!")[0]) == (
        "invalidQuery", 'Binder Error: Referenced column "nosuch" not found in FROM clause',
    )  # fmt: skip
    assert "\n" not in text


def test_a_table_is_qualified_unless_there_is_a_default_dataset(tables: Work) -> None:
    text = 'Table "t" must be qualified with a dataset (e.g. dataset.table).'
    assert tables.error("SELECT 1 FROM t", dataset=None) == ("invalid", text)
    assert tables.query("SELECT id FROM d.t", dataset=None)[0] == {"tables": [place("t")]}


@pytest.mark.parametrize(("given", "kind", "value"), CASES["parameters"])
def test_a_parameter_is_a_value_of_its_type(work: Work, given: Any, kind: str, value: Any) -> None:
    done = work.query("SELECT @Number AS x", parameters=[{"name": "numBER", **given}])[-1]["done"]
    assert done["schema"] == [field("x", kind)]
    assert work.rows(done["schema"]) == [[value]]


def test_a_parameter_of_several_values_is_refused(work: Work) -> None:
    given = [{"name": "n", "parameterType": {"type": "STRUCT"}}]
    found = work.error("SELECT @n AS x", parameters=given)
    assert found == (
        "invalidQuery",
        "the local cloud does not support query parameters of type RECORD",
    )


@pytest.mark.parametrize(("sql", "column", "size", "value", "exact"), CASES["values"])
def test_a_value_has_a_type_a_size_and_a_form_in_rest(
    work: Work, sql: str, column: Any, size: int, value: Any, exact: Any
) -> None:
    done = work.query(f"SELECT {sql} AS x")[-1]["done"]
    assert done == {"schema": [column], "rows": 1, "bytes": {"x": size}}
    assert work.rows(done["schema"]) == [[value]]
    assert work.rows(done["schema"], exact=True) == [[exact]]


FILES_ID, NAME = (
    {"name": "id", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "name", "type": "STRING", "mode": "NULLABLE"},
)
JSON = "NEWLINE_DELIMITED_JSON"


def load(work: Work, config: Any, schema: Any, *files: str) -> Any:
    [said] = work.do(
        "load", config=config, schema=schema, files=files, output=work.path("out.parquet")
    )
    return said


@pytest.mark.parametrize(("text", "config", "rows"), CASES["files"])
def test_columns_that_are_given_are_those_of_the_file(
    work: Work, text: str, config: Any, rows: Any
) -> None:
    given = [{"name": "id", "type": "int64"}, {"name": "name", "type": "string"}]
    done = load(work, config, given, work.write("f", text))["done"]
    assert done["schema"] == [FILES_ID, NAME]
    assert (done["rows"], work.rows(done["schema"])) == (len(rows), rows)
    assert done["bytes"]["id"] == 8 * len(rows)


def test_columns_of_parquet_are_joined_by_name(work: Work) -> None:
    work.query("SELECT 1 AS id, 'a' AS name", output=work.path("a.parquet"))
    work.query("SELECT 'b' AS name", output=work.path("b.parquet"))
    config = {"sourceFormat": "PARQUET"}
    done = load(work, config, [], work.path("a.parquet"), work.path("b.parquet"))["done"]
    assert (done["schema"], work.rows(done["schema"])) == (
        [FILES_ID, NAME],
        [["1", "a"], [None, "b"]],
    )


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
        ({"sourceFormat": "AVRO"}, [FILES_ID], "the local cloud cannot load files of format AVRO"),
        (
            {},
            [FILES_ID | {"type": "GEOGRAPHY"}],
            "the local cloud does not support columns of type GEOGRAPHY",
        ),
    ],
)
def test_what_is_not_loaded_is_refused(work: Work, config: Any, schema: Any, text: str) -> None:
    said = load(work, config, schema, work.write("f", "1\n"))
    assert said == {"error": {"reason": "invalid", "message": text}}


def test_a_file_that_does_not_fit_says_why(work: Work) -> None:
    error = load(work, {}, [FILES_ID], work.write("f", "a\n"))["error"]
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


def test_no_other_form_is_exported(work: Work) -> None:
    said, file = export(work, destinationFormat="AVRO")
    text = "the local cloud cannot export to format AVRO"
    assert (said, file.exists()) == ([{"error": {"reason": "invalid", "message": text}}], False)


@pytest.mark.parametrize(("sql", "wanted"), CASES["names"])
def test_names_of_a_query_are_not_taken_for_its_tables(
    work: Work, sql: str, wanted: list[int]
) -> None:
    for name, values in (("a", "1, 2, 3"), ("b", "10, 20")):
        work.query(f"SELECT id FROM UNNEST([{values}]) AS id", output=work.path(f"{name}.parquet"))
        work.tables[name] = {"files": [work.path(f"{name}.parquet")], "schema": [field("id")]}
    done = work.query(sql)[-1]["done"]
    assert work.rows(done["schema"]) == [[str(value)] for value in wanted]
