"""The engine of the local cloud's BigQuery as a process: what a query reads, and what it cannot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp import bigquery
from tests.warehouse import install_engine

ENGINE = Path(bigquery.__file__).with_name("engine.py")
SCHEMA = [{"name": "id", "type": "INTEGER", "mode": "NULLABLE"}]
TABLES = {"a": "1, 2, 3", "b": "10, 20", "secret": "42"}


@pytest.fixture(scope="module")
def python() -> str:
    return install_engine()


@pytest.fixture(scope="module")
def query(python: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Run a query on ``d.a`` and ``d.b``: the values of its first column, or what is refused."""

    folder = tmp_path_factory.mktemp("rows")

    def duck(sql: str) -> list[list[Any]]:
        code = "import duckdb, json, sys; found = duckdb.sql(sys.argv[1]); "
        code += "print(json.dumps(found.fetchall() if found else []))"
        done = subprocess.run([python, "-c", code, sql], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    for name, values in TABLES.items():
        duck(f"COPY (SELECT unnest([{values}])::BIGINT AS id) TO '{folder / name}.parquet'")

    def run(sql: str) -> Any:
        output = folder / "output.parquet"
        request = {
            "operation": "query", "sql": sql, "parameters": [], "project": "p", "dataset": "d",
            "dryRun": False, "output": str(output), "folder": str(folder),
        }  # fmt: skip
        with subprocess.Popen(
            [python, "-I", str(ENGINE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
        ) as process:  # fmt: skip
            assert process.stdin
            assert process.stdout

            def told(line: Any) -> dict[str, Any]:
                process.stdin.write(json.dumps(line) + "\n")
                process.stdin.flush()
                return json.loads(process.stdout.readline())

            said = told(request)
            if "tables" in said:
                files = [str(folder / f"{each['tableId']}.parquet") for each in said["tables"]]
                said = told([{"files": [each], "schema": SCHEMA} for each in files])
            if "read" in said:
                said = told(True)
        if "error" in said:
            return said["error"]["message"]
        return [row[0] for row in duck(f"FROM '{output}'")]

    return run


@pytest.mark.parametrize(
    "hidden",
    [
        "read_parquet('*.parquet')",
        "LATERAL read_parquet('secret.parquet')",
        "LATERAL read_blob('*')",
        "LATERAL query(\"FROM 'secret.parquet'\")",
        "query_table('secret.parquet')",
        "d.a, LATERAL read_parquet('secret.parquet')",
    ],
)
def test_a_query_reads_the_files_of_its_tables_alone(query: Callable[[str], Any], hidden: str):
    assert "no table function" in query(f"SELECT * FROM {hidden}")


def test_a_syntax_error_has_no_colours(query: Callable[[str], Any]):
    said = query("SELECT 'a''b' FROM d.a")
    assert said.startswith("Syntax error: ")
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("WITH t0 AS (SELECT id FROM d.a) "
         "SELECT id FROM d.b CROSS JOIN (SELECT count(*) FROM t0)", [10, 20]),
        ("WITH t1 AS (SELECT id * 100 AS id FROM d.a) "
         "SELECT DISTINCT y.id FROM d.a AS x CROSS JOIN d.b AS y ORDER BY 1", [10, 20]),
        ("WITH `T0` AS (SELECT 7 AS id), t_1 AS (SELECT 8 AS id) "
         "SELECT id FROM d.b ORDER BY id", [10, 20]),
    ],
)  # fmt: skip
def test_names_of_a_query_are_not_taken_for_its_tables(
    query: Callable[[str], Any], sql: str, wanted: list[int]
):
    assert query(sql) == wanted
