"""What BigQuery refuses at once, and in which form."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from localgcp.bigquery.service import BigQuery
from localgcp.errors import RefusedRequestError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.reads.serving import Reads

PLACE = "/bigquery/v2/projects/local-training"
TABLE = {"projectId": "local-training", "datasetId": "facts", "tableId": "t"}
DATASET = {"datasetReference": {"datasetId": "facts"}}


@pytest.fixture
def reads(tmp_path: Path) -> Reads:
    home = Home(tmp_path / "home", tmp_path)
    home.create()
    store, faults = Store(home.database), FaultTable(home.faults)
    warehouse = BigQuery(home, store, faults, "http://127.0.0.1:1")
    return Reads(store, faults, threading.Event(), warehouse)


def post(reads: Reads, path: str, body: Any) -> Any:
    return json.loads(reads.answer("POST", f"{PLACE}/{path}", json.dumps(body).encode()) or b"")


def refused(reads: Reads, path: str, body: Any) -> str:
    with pytest.raises(RefusedRequestError) as told:
        post(reads, path, body)
    assert told.value.status == 400
    return str(told.value)


@pytest.mark.parametrize(
    ("path", "body", "missing"),
    [
        ("datasets", {}, "datasetReference.datasetId"),
        ("datasets", {"datasetReference": None}, "datasetReference.datasetId"),
        ("jobs", {}, "configuration"),
        (
            "jobs",
            {"configuration": {"load": {"sourceUris": ["gs://b/o"]}}},
            "destinationTable.projectId",
        ),
        (
            "jobs",
            {"configuration": {"query": {"query": "SELECT 1", "destinationTable": TABLE | {
                "tableId": "",
            }}}},
            "destinationTable.tableId",
        ),
        ("queries", {"useLegacySql": False}, "query"),
    ],
)  # fmt: skip
def test_what_is_missing_is_asked_for(
    reads: Reads, path: str, body: dict[str, Any], missing: str
) -> None:
    assert refused(reads, path, body) == f"Required parameter is missing: {missing}"


def test_a_table_is_made_where_the_path_says_and_nowhere_else(reads: Reads) -> None:
    post(reads, "datasets", DATASET)
    told = refused(reads, "datasets/facts/tables", {"tableReference": {}})
    assert told == "Required parameter is missing: tableReference.tableId"
    other = {"tableReference": TABLE | {"datasetId": "others"}}
    told = refused(reads, "datasets/facts/tables", other)
    assert told == "Value others in content does not agree with value facts of the path."
    made = post(reads, "datasets/facts/tables", {"tableReference": {"tableId": "t"}})
    assert made["tableReference"] == TABLE


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("datasets", {"datasetReference": {"datasetId": "a-b"}}, "Invalid dataset ID 'a-b'"),
        (
            "jobs",
            {"configuration": {"query": {"query": "SELECT 1"}}, "jobReference": {"jobId": "a/b"}},
            "Invalid job ID 'a/b'",
        ),
        (
            "datasets",
            {"datasetReference": {"datasetId": "a", "projectId": "local-other"}},
            "Value local-other in content does not agree with value local-training",
        ),
    ],
)
def test_a_wrong_name_is_refused(reads: Reads, path: str, body: dict[str, Any], told: str) -> None:
    assert told in refused(reads, path, body)
