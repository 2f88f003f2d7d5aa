"""BigQuery inside the test process, with an engine that says what a test gives it."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from localgcp import bigquery
from localgcp.access.callers import Guest
from localgcp.apis import discovery
from localgcp.bigquery import catalog, jobs, service
from localgcp.bigquery.service import BigQuery, Call
from localgcp.errors import BigQueryError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from tests.warehouse import install_engine

PROJECT: Final = "local-training"
#: What every clock says, in milliseconds.
NOW: Final = 1_700_000_000_000
SQL = {"query": "SELECT id FROM web.clicks", "useLegacySql": False}
FIELDS = [{"name": "id", "type": "INTEGER", "mode": "NULLABLE"}]
MADE = {"done": {"schema": FIELDS, "rows": 2, "bytes": {"id": 16}}}
PLACE = {"projectId": PROJECT, "datasetId": "web", "tableId": "clicks"}
OTHER = PLACE | {"tableId": "copy"}
DAY = 24 * 3600 * 1000
#: It answers each line with the next one of the file that is named after the operation.
PROGRAM: Final = r"""#!/bin/sh
IFS= read -r line
operation=${line#*\"operation\": \"}; operation=${operation%%\"*}
output=${line#*\"output\": \"}; output=${output%%\"*}
[ "$operation" = export ] && printf 'rows' > "$output"
printf '%s\n' "$@" "HOME=$HOME" "PWD=$PWD" "PYTHONPATH=${PYTHONPATH-none}" > FOLDER/called
exec 3< "FOLDER/$operation.says"
while :; do
  printf '%s\n' "$line" >> FOLDER/asked
  IFS= read -r said <&3 || exit 3
  printf '%s\n' "$said"
  IFS= read -r line || exit 0
done
"""


def table(place: dict[str, str], *versions: Any, **fields: Any) -> dict[str, Any]:
    """A table as the catalog has it, in us-central1."""
    return {
        "kind": "bigquery#table",
        "id": f"{PROJECT}:{place['datasetId']}.{place['tableId']}",
        "tableReference": place,
        "type": "TABLE",
        "location": "us-central1",
        "creationTime": str(NOW - DAY),
        "lastModifiedTime": str(NOW - DAY),
        "versions": list(versions),
        **fields,
    }


def ask_for(table_id: str = "clicks", as_of: int | None = None, **other: str) -> dict[str, Any]:
    """The engine's question for a table."""
    place = {"projectId": PROJECT, "datasetId": "web", "tableId": table_id, **other}
    return {"tables": [{**place, "asOf": as_of}]}


def failure(job: dict[str, Any]) -> Any:
    """Why a job failed."""
    assert job["status"]["state"] == "DONE"
    error = job["status"].get("errorResult")
    assert job["status"] == {"state": "DONE"} | (
        {"errorResult": error, "errors": [error]} if error else {}
    )
    return error and (error["reason"], error["message"])


@dataclass(frozen=True)
class Engine:
    """A program in the engine's place."""

    folder: Path

    def says(self, operation: str, *answers: Any) -> None:
        """Answer the lines of an operation so."""
        lines = "".join(f"{json.dumps(each)}\n" for each in answers)
        (self.folder / f"{operation}.says").write_text(lines)

    @property
    def asked(self) -> list[Any]:
        """The lines that it was given."""
        file = self.folder / "asked"
        return [json.loads(each) for each in file.read_text().splitlines()] if file.exists() else []

    @property
    def called(self) -> list[str]:
        """Its arguments and its environment."""
        return (self.folder / "called").read_text().splitlines()


@dataclass(frozen=True)
class Service:
    """BigQuery of one home, by its methods."""

    home: Home
    store: Store
    faults: FaultTable
    bigquery: BigQuery
    guest: Guest | None = None

    @property
    def data(self) -> Path:
        return self.home.bigquery

    def ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What a method answers. ``path`` begins below the project and may have a query."""
        path, _, query = path.partition("?")
        path = f"/bigquery/v2/projects/{PROJECT}/{path}"
        method = discovery.find(verb, path)
        assert method, f"no method is called by {verb} {path}"
        call = Call(method.variables(path), body or {}, parse_qs(query), self.guest)
        return service.METHODS[method.id.removeprefix("bigquery.v2.")](self.bigquery, call)

    def refusal(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Status, reason and text of a refusal."""
        with pytest.raises(BigQueryError) as told:
            self.ask(verb, path, body)
        return told.value.status, told.value.reason, str(told.value)

    def run(self, name: str, **configuration: Any) -> Any:
        """A job that has ended."""
        reference = {"jobId": name, "location": "us-central1"}
        self.ask("POST", "jobs", {"jobReference": reference, "configuration": configuration})
        return self.bigquery.jobs.wait(PROJECT, name, 30)

    def put(self, kind: str, name: str, body: Any) -> None:
        with catalog.Catalog(self.home.database, self.data).change() as rows:
            rows.put(kind, PROJECT, name, body)

    def get(self, kind: str, name: str) -> Any:
        return catalog.Catalog(self.home.database, self.data).get(kind, PROJECT, name)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    own = bigquery.engine_environment()
    (own.folder / "bin").mkdir(parents=True)
    own.marker.touch()
    python = own.folder / "bin" / "python"
    python.write_text(PROGRAM.replace("FOLDER", str(tmp_path)))
    python.chmod(0o755)
    return Engine(tmp_path)


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Without an engine, unless the test asks for one; all clocks stand still."""
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    for module in (catalog, jobs, service):
        monkeypatch.setattr(module, "now", lambda: NOW)
    home = Home(tmp_path / "home", tmp_path)
    home.create()
    store, faults = Store(home.database), FaultTable(home.faults)
    made = BigQuery(home, store, faults, "http://127.0.0.1:9")
    made.jobs.start()
    yield Service(home, store, faults, made)
    made.jobs.stop()


class Answering:
    """Standard input of the engine: a request, then what a server answers to its questions."""

    def __init__(self, request: Any, tables: Mapping[str, Any], said: io.StringIO) -> None:
        self._request, self._tables, self._said = request, tables, said

    def readline(self) -> str:
        if not (lines := self._said.getvalue().splitlines()):
            return json.dumps(self._request)
        question = json.loads(lines[-1])
        return json.dumps(
            [self._tables[each["tableId"]] for each in question["tables"]]
            if "tables" in question
            else True
        )


@dataclass(frozen=True)
class Work:
    """The engine inside the test process, over a folder."""

    engine: Any
    folder: Path
    tables: dict[str, Any]
    """What a server answers for a table, by its id."""

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str, text: str) -> str:
        """A file to load."""
        (self.folder / name).write_text(text)
        return self.path(name)

    def do(self, operation: str, **request: Any) -> list[Any]:
        """All that the engine says to a request."""
        said = io.StringIO()
        given = {"operation": operation, "folder": str(self.folder), **request}
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
            patch.setattr(sys, "stdin", Answering(given, self.tables, said))
            self.engine.main()
        return [json.loads(each) for each in said.getvalue().splitlines()]

    def query(self, sql: str, **request: Any) -> list[Any]:
        """The same to a query; its rows are in ``out.parquet``."""
        given = {"parameters": [], "project": "p", "dataset": "d", "dryRun": False,
                 "output": self.path("out.parquet"), **request}  # fmt: skip
        return self.do("query", sql=sql, **given)

    def error(self, sql: str, **request: Any) -> tuple[str, str]:
        """Reason and text of what is refused."""
        found = self.query(sql, **request)[-1]["error"]
        return found["reason"], found["message"]

    def rows(self, schema: Any, name: str = "out.parquet", exact: bool = False) -> list[list[Any]]:
        """Values of a file of rows."""
        table = {"files": [self.path(name)], "schema": schema}
        [said] = self.do("read", table=table, offset=0, limit=100, exactTimes=exact)
        return [[each["v"] for each in row["f"]] for row in said["done"]["rows"]]


@pytest.fixture(scope="session")
def engine_module() -> Iterator[Any]:
    """``localgcp.bigquery.engine`` with the packages of its own environment."""
    python = Path(install_engine())
    with pytest.MonkeyPatch.context() as patch:
        [packages] = python.parents[1].glob("lib/python*/site-packages")
        patch.setattr(sys, "path", [*sys.path, str(packages)])
        yield importlib.import_module("localgcp.bigquery.engine")


@pytest.fixture
def work(engine_module: Any, tmp_path: Path) -> Work:
    return Work(engine_module, tmp_path, {})
