"""Queries of BigQuery as the engine runs them: which tables they read, and what comes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.bigquery.conftest import Work


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
AT = "FOR SYSTEM_TIME AS OF TIMESTAMP"


@pytest.mark.parametrize(
    ("sql", "named", "read", "rows"),
    [
        ("SELECT id FROM t", [place("t")], [ID], [["7"]]),
        ("SELECT ID FROM t", [place("t")], [ID], [["7"]]),
        ("SELECT * FROM d.t", [place("t")], [BOTH], [["7", "x"]]),
        ("SELECT * FROM x.t", [place("t", "x")], [BOTH], [["7", "x"]]),
        ("SELECT count(*) FROM q.d.t", [place("t") | {"projectId": "q"}], [[]], [["1"]]),
        ("SELECT name FROM `p.d.t`", [place("t")], [["Name"]], [["x"]]),
        ("SELECT a.id FROM t AS a JOIN x.u AS b USING (id) WHERE b.NAME = 'x'",
         [place("t"), place("u", "x")], [ID, BOTH], [["7"]]),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM u)", [place("t"), place("u")], [ID, ID],
         [["7"]]),
        ("WITH c AS (SELECT * FROM t) SELECT id FROM c", [place("t")], [ID], [["7"]]),
        ("WITH C AS (SELECT 1 AS k) SELECT k FROM c", [], [], [["1"]]),
        ("SELECT id FROM e", [place("e")], [ID], []),
        ("SELECT t.id, u.k FROM t, LATERAL (SELECT 1 AS k) AS u", [place("t")], [ID],
         [["7", "1"]]),
        ("SELECT x FROM UNNEST([2, 3]) AS x", [], [], [["2"], ["3"]]),
        ("SELECT id FROM t TABLESAMPLE SYSTEM (100 PERCENT)", [place("t")], [ID], [["7"]]),
        ("SELECT id FROM t TABLESAMPLE SYSTEM (0 PERCENT)", [place("t")], [ID], []),
        ("SELECT * FROM t PIVOT(count(*) FOR id IN (7, 8))", [place("t")], [ID],
         [["x", "1", "0"]]),
        (f"SELECT id FROM t {AT} '2024-01-01 00:00:01+00'",
         [place("t", as_of=1_704_067_201_000)], [ID], [["7"]]),
        ("SELECT id FROM t FOR SYSTEM_TIME AS OF "
         "TIMESTAMP_SUB(TIMESTAMP '2024-01-01 01:00:00+00', INTERVAL 1 HOUR)",
         [place("t", as_of=1_704_067_200_000)], [ID], [["7"]]),
        *((f"{before}SELECT id FROM t{after}", [place("t")], [ID], [["7"]]) for before, after in (
            ("", ";"), ("", ";;"), (";", ""), ("", "; -- done"), ("-- begin\n;", " -- end"),
        )),
        # What SQLGlot cannot resolve may read all.
        ("SELECT a.id FROM t AS a, (SELECT 1 AS z) AS a", [place("t")], [BOTH], [["7"]]),
    ],
)  # fmt: skip
def test_a_query_names_its_tables_and_the_columns_that_it_reads(
    tables: Work, sql: str, named: Any, read: Any, rows: Any
) -> None:
    asked, weighed, done = tables.query(sql)
    assert (asked, weighed) == ({"tables": named}, {"read": read})
    assert tables.rows(done["done"]["schema"]) == rows
    assert done["done"]["rows"] == len(rows)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1, id, id + 1, 'a' AS b, Name FROM t", ["f0_", "id", "f1_", "b", "Name"]),
        ("SELECT 1 UNION ALL SELECT 2", ["f0_"]),
        ("(SELECT 1)", ["f0_"]),
        ("SELECT *, 2 FROM t", ["id", "Name", "f0_"]),
        ("SELECT r.a FROM (SELECT STRUCT(1 AS a) AS r)", ["a"]),
        ("SELECT (SELECT 1) AS x, (SELECT 2)", ["x", "f0_"]),
    ],
)
def test_columns_without_a_name_are_numbered(tables: Work, sql: str, names: list[str]) -> None:
    done = tables.query(sql)[-1]["done"]
    assert [each["name"] for each in done["schema"]] == names
    assert list(done["bytes"]) == names


def test_a_dry_run_has_a_schema_and_writes_nothing(tables: Work) -> None:
    said = tables.query("SELECT id FROM d.t", dryRun=True, dataset=None, output="")
    assert said == [{"tables": [place("t")]}, {"read": [ID]}, {"done": {"schema": [field("id")]}}]
    assert sorted(each.name for each in tables.folder.iterdir()) == ["rows.parquet"]


ONE = "the local cloud runs one query at a time: no script, DDL or DML"
NO_META = "the local cloud has no wildcard and no view of metadata: "
NO_FUNCTION = "the local cloud has no table function: "


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 1; SELECT 2", ONE),
        *((each, ONE) for each in ("", ";", "-- nothing", "; -- nothing")),
        ("CREATE TABLE d.x AS SELECT 1", ONE),
        ("INSERT INTO d.t VALUES (1)", ONE),
        ("SELECT ?", "the local cloud takes named parameters alone"),
        ("SELECT @n", "Query parameter 'n' not found"),
        ("SELECT * FROM `d.t_*`", f"{NO_META}['d', 't_*']"),
        ("SELECT * FROM d.INFORMATION_SCHEMA.TABLES",
         f"{NO_META}['d', 'INFORMATION_SCHEMA.TABLES']"),
        ("SELECT * FROM read_csv('x')", f"{NO_FUNCTION}read_csv('x')"),
        ("SELECT * FROM t, LATERAL read_csv('x')", f"{NO_FUNCTION}LATERAL read_csv('x')"),
        ("SELECT id, ID FROM t", "Duplicate column names in the result are not supported: ['id']"),
        ("SELECT INTERVAL 1 DAY AS x",
         "the local cloud has no results of type INTERVAL (column x)"),
        ("SELECT id FROM t FOR SYSTEM_TIME AS OF NULL",
         "FOR SYSTEM_TIME AS OF has no time: NULL"),
        ("SELEC 1",
         "Syntax error: Invalid expression / Unexpected token. Line 1, Col: 7. SELEC 1"),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ({"parameterType": {"type": "INT64"}, "parameterValue": {"value": "5"}}, "INTEGER", "5"),
        ({"parameterType": {"type": "string"}, "parameterValue": {"value": "a'b"}}, "STRING",
         "a'b"),
        ({"parameterType": {"type": "STRING"}, "parameterValue": {}}, "STRING", None),
        ({"parameterType": {"type": "FLOAT64"}}, "FLOAT", None),
        ({"parameterType": {"type": "BOOL"}, "parameterValue": {"value": "true"}}, "BOOLEAN",
         "true"),
        ({"parameterType": {"type": "TIMESTAMP"},
          "parameterValue": {"value": "2024-01-01T00:00:00Z"}}, "TIMESTAMP", "1704067200.0"),
    ],
)  # fmt: skip
def test_a_parameter_is_a_value_of_its_type(work: Work, given: Any, kind: str, value: Any) -> None:
    done = work.query("SELECT @Number AS x", parameters=[{"name": "numBER", **given}])[-1]["done"]
    assert done["schema"] == [field("x", kind)]
    assert work.rows(done["schema"]) == [[value]]


def test_a_parameter_of_several_values_is_refused(work: Work) -> None:
    given = [{"name": "n", "parameterType": {"type": "STRUCT"}}]
    found = work.error("SELECT @n AS x", parameters=given)
    assert found == ("invalidQuery", "the local cloud takes no parameter of type RECORD")


LIST = {"mode": "REPEATED"}
#: Expression -> its field, bytes, value in REST, and exactly.
VALUES = (
    ("1", field("x"), 8, "1", "1"),
    ("CAST(1.5 AS FLOAT64)", field("x", "FLOAT"), 8, "1.5", "1.5"),
    ("TRUE", field("x", "BOOLEAN"), 1, "true", "true"),
    ("1 = 2", field("x", "BOOLEAN"), 1, "false", "false"),
    ("'hé'", field("x", "STRING"), 5, "hé", "hé"),
    ("b'abc'", field("x", "BYTES"), 5, "YWJj", "YWJj"),
    ("DATE '2024-02-29'", field("x", "DATE"), 8, "2024-02-29", "2024-02-29"),
    ("TIME '01:02:03'", field("x", "TIME"), 8, "01:02:03", "01:02:03"),
    ("DATETIME '2024-02-29 01:02:03'", field("x", "DATETIME"), 8, *["2024-02-29T01:02:03"] * 2),
    ("TIMESTAMP '2024-02-29 01:02:03.5+00'", field("x", "TIMESTAMP"), 8, "1709168523.5",
     "1709168523500000"),
    ("NUMERIC '1.123456789'", field("x", "NUMERIC"), 16, *["1.123456789"] * 2),
    ("CAST('-2.000000001' AS NUMERIC)", field("x", "NUMERIC"), 16, *["-2.000000001"] * 2),
    ("BIGNUMERIC '0.1234567890123456789'", field("x", "BIGNUMERIC"), 32,
     *["0.1234567890123456789"] * 2),
    ("CAST('1.0123456789' AS BIGNUMERIC(20, 10))", field("x", "BIGNUMERIC"), 32,
     *["1.0123456789000000000"] * 2),
    ("CAST('1.26' AS NUMERIC(4, 1))", field("x", "NUMERIC"), 16, *["1.300000000"] * 2),
    ("NULL", field("x"), 0, None, None),
    ("CAST(NULL AS STRING)", field("x", "STRING"), 0, None, None),
    ("GENERATE_UUID() = ''", field("x", "BOOLEAN"), 1, "false", "false"),
    ("[1, 2]", field("x") | LIST, 16, *[[{"v": "1"}, {"v": "2"}]] * 2),
    ("CAST(NULL AS ARRAY<INT64>)", field("x") | LIST, 0, [], []),
    ("STRUCT(1 AS a, 'xy' AS b)",
     field("x", "RECORD", fields=[field("a"), field("b", "STRING")]), 12,
     *[{"f": [{"v": "1"}, {"v": "xy"}]}] * 2),
    ("[STRUCT(1 AS a, ['p', 'qq'] AS z)]",
     field("x", "RECORD", fields=[field("a"), field("z", "STRING") | LIST]) | LIST, 15,
     *[[{"v": {"f": [{"v": "1"}, {"v": [{"v": "p"}, {"v": "qq"}]}]}}]] * 2),
    ("[TIMESTAMP '2024-02-29 01:02:03.5+00']", field("x", "TIMESTAMP") | LIST, 8,
     [{"v": "1709168523.5"}], [{"v": "1709168523500000"}]),
    ("STRUCT(TIMESTAMP '1969-12-31 23:59:59.999999+00' AS a)",
     field("x", "RECORD", fields=[field("a", "TIMESTAMP")]), 8,
     {"f": [{"v": "-1e-06"}]}, {"f": [{"v": "-1"}]}),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "column", "size", "value", "exact"), VALUES)
def test_a_value_has_a_type_a_size_and_a_form_in_rest(
    work: Work, sql: str, column: Any, size: int, value: Any, exact: Any
) -> None:
    done = work.query(f"SELECT {sql} AS x")[-1]["done"]
    assert done == {"schema": [column], "rows": 1, "bytes": {"x": size}}
    assert work.rows(done["schema"]) == [[value]]
    assert work.rows(done["schema"], exact=True) == [[exact]]
