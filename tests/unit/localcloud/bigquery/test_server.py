"""The local cloud's BigQuery as a server: tables at a time, and jobs after a restart."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from localgcp import lifecycle, processes
from localgcp.faults.model import Fault, Kind, Service
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from tests.unit.localcloud.conftest import wait_until
from tests.warehouse import Warehouse, install_engine

TABLE = "web.clicks"
AS_OF = f"SELECT * FROM {TABLE} FOR SYSTEM_TIME AS OF "


@pytest.fixture
def warehouse(home: Home) -> Iterator[Warehouse]:
    """BigQuery of a server, with one table."""
    install_engine()
    found = Warehouse(lifecycle.start(home, print).ports, "local-training")
    try:
        found.make_dataset("web")
        found.load(TABLE, ("id", "1", "2"))
        yield found
    finally:
        lifecycle.stop(home)


def rows(warehouse: Warehouse, sql: str, at: float | None = None) -> Any:
    """The rows of a query in which ``@at`` is a time, or why there are none."""
    value = None if at is None else time.strftime("%FT%TZ", time.gmtime(at))
    parameter = {
        "name": "at",
        "parameterType": {"type": "TIMESTAMP"},
        "parameterValue": {"value": value},
    }
    job = warehouse.ended(warehouse.send_query(sql, [parameter]))
    if error := job["status"].get("errorResult"):
        return error["reason"], error["message"]
    return result(warehouse, job)


def result(warehouse: Warehouse, job: dict[str, Any]) -> list[list[str]]:
    found = warehouse.call("GET", f"queries/{job['jobReference']['jobId']}").get("rows", [])
    return sorted([cell["v"] for cell in row["f"]] for row in found)


def engines(server: int) -> list[psutil.Process]:
    """Processes of a server that do a job's work."""
    found = psutil.Process(server).children(recursive=True)
    return [each for each in found if "engine.py" in " ".join(each.cmdline())]


def test_a_table_is_read_as_it_was_or_not_at_all(warehouse: Warehouse) -> None:
    time.sleep(1.1)  # a time of whole seconds lies between the two
    before = time.time()
    warehouse.load(TABLE, ("id", "3"))
    warehouse.load(TABLE, ("id,name", "4,x"), "WRITE_TRUNCATE")
    assert rows(warehouse, f"SELECT * FROM {TABLE}") == [["4", "x"]]
    # Its rows, and its columns.
    assert rows(warehouse, f"{AS_OF} @at", before) == [["1"], ["2"]]
    reason, text = rows(warehouse, f"SELECT name FROM {TABLE} FOR SYSTEM_TIME AS OF @at", before)
    assert (reason, "name" in text) == ("invalidQuery", True)
    for at, why in (
        (before - 3600, "Cannot read before"),
        (before - 8 * 24 * 3600, "Cannot read before"),
        (before + 3600, "Cannot read after"),
    ):
        reason, text = rows(warehouse, f"{AS_OF} @at", at)
        assert (reason, why in text) == ("invalid", True), text
    assert rows(warehouse, f"{AS_OF} @at") == (
        "invalidQuery", "FOR SYSTEM_TIME AS OF has no time: NULL",
    )  # fmt: skip


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_that_a_server_left_runs_again_and_ends(
    home: Home, warehouse: Warehouse, how: int
) -> None:
    faults = FaultTable(home.faults)
    kinds = ("query", "load")
    held = {
        kind: faults.add(Fault(service=Service.BIGQUERY, kind=Kind.HOLD, method=kind))
        for kind in kinds
    }
    query = warehouse.send_query(f"SELECT * FROM {TABLE}")
    load = warehouse.send_load(TABLE, ("id", "3"))
    wait_until(lambda: all(faults.get(each).held for each in held.values()))
    info = lifecycle.running(home)
    assert info is not None
    os.kill(info.pid, how)
    wait_until(lambda: processes.start_time(info.pid) is None)
    for file in home.storage.glob("raw/*"):
        file.unlink()
    faults.clear()
    warehouse = Warehouse(lifecycle.start(home, print).ports, warehouse.project)
    ended = warehouse.ended(query)
    assert "errorResult" not in ended["status"]
    assert result(warehouse, ended) == [["1"], ["2"]]
    # What it needs is gone: it ends, and says so.
    assert warehouse.ended(load)["status"]["errorResult"]["reason"] == "notFound"


def test_an_engine_of_a_killed_server_is_ended_and_its_rows_count_once(
    home: Home, warehouse: Warehouse
) -> None:
    info = lifecycle.running(home)
    assert info is not None
    load = warehouse.send_load(TABLE, ("id", "3"))
    [engine] = wait_until(lambda: engines(info.pid))
    engine.suspend()
    os.kill(info.pid, signal.SIGKILL)
    wait_until(lambda: lifecycle.running(home) is None)
    lifecycle.start(home, print)
    assert "errorResult" not in warehouse.ended(load)["status"]
    assert processes.start_time(engine.pid) is None
    assert rows(warehouse, f"SELECT * FROM {TABLE}") == [["1"], ["2"], ["3"]]
