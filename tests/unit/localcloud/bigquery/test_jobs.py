"""Jobs of BigQuery: what is taken on, what the engine is asked for, and what ends how."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest

from localgcp import bigquery
from localgcp.access.guests import Guest
from localgcp.bigquery import jobs
from localgcp.bigquery.catalog import DATASET, JOB, TABLE
from localgcp.errors import BigQueryError
from localgcp.faults.model import Fault, Kind
from localgcp.faults.model import Service as FaultyService
from tests.unit.localcloud.bigquery.conftest import (
    DAY,
    FIELDS,
    MADE,
    NOW,
    PLACE,
    PROJECT,
    SQL,
    Engine,
    Service,
    ask_for,
    failure,
    table,
)  # fmt: skip
from tests.unit.localcloud.conftest import TRAINER, set_grant, wait_until


@pytest.fixture
def clicks(warehouse: Service) -> Service:
    """With a dataset, and a table of two versions and the column ``id``."""
    warehouse.put(DATASET, "web", {"location": "us-central1"})
    old = [NOW - DAY, ["a.parquet"], 1, {"id": 8, "name": 9}, FIELDS]
    new = [NOW - 10, ["a.parquet", "b.parquet"], 3, {"id": 24, "name": 30}, FIELDS]
    warehouse.put(TABLE, "web.clicks", table(PLACE, old, new, schema={"fields": FIELDS}))
    return warehouse


def test_a_query_is_a_job_with_a_table_of_its_own_for_its_result(
    clicks: Service, engine: Engine
) -> None:
    engine.says("query", ask_for(), {"read": [["id"]]}, MADE)
    ended = clicks.run("q1", query=SQL | {"defaultDataset": {"datasetId": "web"}})
    place = ended["configuration"]["query"]["destinationTable"]
    assert re.fullmatch("_[0-9a-f]{32}", place["datasetId"])
    assert re.fullmatch("anon[0-9a-f]{32}", place["tableId"])
    query = {"defaultDataset": {"datasetId": "web"}, "destinationTable": place,
             "writeDisposition": "WRITE_TRUNCATE"}  # fmt: skip
    assert ended == {
        "kind": "bigquery#job",
        "id": f"{PROJECT}:us-central1.q1",
        "jobReference": {"projectId": PROJECT, "jobId": "q1", "location": "us-central1"},
        "configuration": {"query": SQL | query, "jobType": "QUERY"},
        "status": {"state": "DONE"},
        "statistics": {
            "creationTime": str(NOW), "startTime": str(NOW), "endTime": str(NOW),
            "totalBytesProcessed": "24",
            "query": {
                "statementType": "SELECT", "cacheHit": False, "totalBytesProcessed": "24",
                "totalBytesBilled": str(10 * 1024 * 1024), "referencedTables": [PLACE],
                "schema": {"fields": FIELDS},
            },
        },
        "user_email": "owner@localhost",
        "_account": None,
        "_located": True,
    }  # fmt: skip
    output = engine.asked[0]["output"]
    assert Path(output).parent == clicks.data
    assert re.fullmatch(r"[0-9a-f]{32}\.parquet", Path(output).name)
    data = clicks.data
    assert engine.asked == [
        {"operation": "query", "sql": "SELECT id FROM web.clicks", "parameters": [],
         "project": PROJECT, "dataset": "web", "dryRun": False, "output": output,
         "folder": str(data)},
        [{"files": [str(data / "a.parquet"), str(data / "b.parquet")], "schema": FIELDS}],
        True,
    ]  # fmt: skip
    name = f"{place['datasetId']}.{place['tableId']}"
    assert clicks.get(TABLE, name) == table(
        place,
        [NOW, [Path(output).name], 2, {"id": 16}, FIELDS],
        creationTime=str(NOW),
        lastModifiedTime=str(NOW),
        schema={"fields": FIELDS},
        expirationTime=str(NOW + DAY),
        _account=None,
    )


def test_the_engine_is_a_process_with_nothing_of_the_users(
    clicks: Service, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    engine.says("query", MADE)
    clicks.run("q1", query=SQL)
    program = Path(bigquery.__file__).with_name("engine.py")
    assert engine.called == [
        "-I", str(program), f"HOME={clicks.data}", f"PWD={clicks.data}", "PYTHONPATH=none",
    ]  # fmt: skip


def test_a_job_without_an_id_and_a_location_gets_both(clicks: Service, engine: Engine) -> None:
    engine.says("query", MADE)
    begun = clicks.ask("POST", "jobs", {"configuration": {"query": SQL}})
    name = begun["jobReference"]["jobId"]
    assert re.fullmatch("[0-9a-f]{32}", name)
    assert begun["jobReference"] == {"projectId": PROJECT, "jobId": name, "location": "US"}
    assert (begun["id"], begun["_located"]) == (f"{PROJECT}:US.{name}", False)
    assert begun["status"] == {"state": "RUNNING"}
    assert failure(clicks.bigquery.jobs.wait(PROJECT, name, 30)) is None


def test_a_dry_run_weighs_a_query_and_leaves_nothing(clicks: Service, engine: Engine) -> None:
    engine.says("query", ask_for(), {"read": [["id", "name"]]}, {"done": {"schema": FIELDS}})
    found = clicks.ask(
        "POST", "jobs",
        {"configuration": {"query": SQL | {"maximumBytesBilled": "1"}, "dryRun": True}},
    )  # fmt: skip
    assert found == {
        "kind": "bigquery#job",
        "id": found["id"],
        "jobReference": {"projectId": PROJECT, "location": "US"},
        "configuration": {
            "query": SQL | {"maximumBytesBilled": "1"}, "dryRun": True, "jobType": "QUERY",
        },
        "status": {"state": "DONE"},
        "statistics": {
            "creationTime": str(NOW), "startTime": str(NOW), "totalBytesProcessed": "54",
            "query": {
                "statementType": "SELECT", "cacheHit": False, "totalBytesProcessed": "54",
                "totalBytesBilled": "0", "referencedTables": [PLACE],
                "schema": {"fields": FIELDS},
            },
        },
        "user_email": "owner@localhost",
        "_account": None,
        "_located": False,
    }  # fmt: skip
    assert (engine.asked[0]["dryRun"], engine.asked[0]["output"]) == (True, "")
    assert clicks.ask("GET", "jobs") == {"kind": "bigquery#jobList", "jobs": []}


ONE = {"query": "SELECT 1"}
LOAD = {"sourceUris": ["gs://b/o"], "destinationTable": PLACE}


@pytest.mark.parametrize(
    ("configuration", "refused"),
    [
        ({"copy": {}}, (501, "notImplemented", "the local cloud has no job of this type.")),
        ({"query": {}}, (400, "required", "Required parameter is missing: query")),
        ({"load": LOAD, "dryRun": True}, (400, "invalid", "a dry run is of a query.")),
        ({"query": ONE | {"useLegacySql": True}, "dryRun": True},
         (400, "invalid", "the local cloud has no legacy SQL: useLegacySql: false")),
        ({"query": ONE, "dryRun": True},
         (400, "invalid", "the local cloud has no legacy SQL: useLegacySql: false")),
    ],
)  # fmt: skip
def test_what_can_never_run_is_no_job(
    warehouse: Service, engine: Engine, configuration: Any, refused: Any
) -> None:
    assert warehouse.refusal("POST", "jobs", {"configuration": configuration}) == refused


def test_without_an_engine_a_job_says_how_to_install_it(warehouse: Service) -> None:
    assert warehouse.refusal("POST", "jobs", {"configuration": {"query": ONE}}) == (
        501,
        "notImplemented",
        "BigQuery's engine is not installed. `vt local bigquery --install`, once",
    )
    # Nor does one that was there when the job began.
    place = {"projectId": PROJECT, "datasetId": "d", "tableId": "t"}
    with pytest.raises(BigQueryError) as told:
        warehouse.bigquery.jobs.rows(table(place), 0, 1, exact=False)
    assert told.value.reason == "notImplemented"


def test_an_id_is_taken_once(clicks: Service, engine: Engine) -> None:
    engine.says("query", MADE)
    clicks.run("q1", query=SQL)
    body = {"jobReference": {"jobId": "q1"}, "configuration": {"query": SQL}}
    assert clicks.refusal("POST", "jobs", body) == (
        409, "duplicate", f"Already Exists: Job {PROJECT}:US.q1",
    )  # fmt: skip


def test_code_of_a_job_queries_as_its_account_and_no_more(clicks: Service, engine: Engine) -> None:
    set_grant(clicks.store, f"projects/{PROJECT}", "roles/bigquery.user", TRAINER)
    own = dataclasses.replace(clicks, guest=Guest(TRAINER))
    body = {"configuration": {"load": LOAD}}
    assert own.refusal("POST", "jobs", body) == (
        501, "notImplemented", "code of a job may query here, and no more.",
    )  # fmt: skip
    engine.says("query", ask_for(), {"read": [["id"]]}, MADE)
    ended = own.run("q1", query=SQL)
    assert (ended["user_email"], ended["_account"]) == (TRAINER, TRAINER)
    text = f"Access Denied: {PROJECT}.web.clicks: bigquery.tables.getData denied (or it may not"
    assert failure(ended) == ("accessDenied", f"{text} exist). The job runs as {TRAINER}.")
    # With the right to read, it has a result that is its account's.
    set_grant(clicks.store, f"projects/{PROJECT}/datasets/web", "roles/viewer", TRAINER)
    ended = own.run("q2", query=SQL)
    place = ended["configuration"]["query"]["destinationTable"]
    result = clicks.get(TABLE, f"{place['datasetId']}.{place['tableId']}")
    assert (failure(ended), result["_account"]) == (None, TRAINER)
    # That it may replace. Into a result of another account it writes nothing.
    again = SQL | {"destinationTable": place, "writeDisposition": "WRITE_TRUNCATE"}
    assert failure(own.run("q3", query=again)) is None
    other = f"other@{PROJECT}.iam.gserviceaccount.com"
    clicks.put(TABLE, f"{place['datasetId']}.{place['tableId']}", result | {"_account": other})
    ended = own.run("q4", query=again)
    label = f"{PROJECT}:{place['datasetId']}.{place['tableId']}"
    assert failure(ended) == ("accessDenied", f"Access Denied: Table {label}: a result of others")


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        (None, None), ("20971520", None),
        ("20971519", ("bytesBilledLimitExceeded", "Query exceeded limit for bytes billed: 20971519."
                      " 20971520 or higher required.")),
    ],
)  # fmt: skip
def test_a_query_that_would_cost_too_much_does_not_run(
    clicks: Service, engine: Engine, limit: str | None, refused: Any
) -> None:
    """Ten mebibytes at least for each table that is read; nothing for one without bytes."""
    for name in ("more", "empty"):
        clicks.put(TABLE, f"web.{name}", table(PLACE | {"tableId": name}))
    version = [NOW - 1, ["c"], 1, {"id": 10 << 20}, FIELDS]
    clicks.put(TABLE, "web.more", table(PLACE | {"tableId": "more"}, version))
    tables = [each for name in ("clicks", "more", "empty") for each in ask_for(name)["tables"]]
    engine.says("query", {"tables": tables}, {"read": [["id"], ["id"], []]}, MADE)
    ended = clicks.run("q1", query=SQL | ({"maximumBytesBilled": limit} if limit else {}))
    assert failure(ended) == refused
    if refused is None:
        billed = ended["statistics"]["query"]["totalBytesBilled"]
        assert (billed, len(ended["statistics"]["query"]["referencedTables"])) == ("20971520", 3)


@pytest.mark.parametrize(
    ("read", "billed"),
    [([], 0), ([0], 0), ([1], 10 << 20), ([10 << 20], 10 << 20), ([(10 << 20) + 1], 11 << 20),
     ([11 << 20], 11 << 20), ([1, 0, 1], 20 << 20)],
)  # fmt: skip
def test_bytes_are_billed_by_the_mebibyte_and_ten_at_least(read: list[int], billed: int) -> None:
    assert jobs.billed(read) == billed


@pytest.mark.parametrize(
    ("as_of", "files"),
    [(NOW, ["a.parquet", "b.parquet"]), (NOW - 11, ["a.parquet"]), (NOW - DAY, ["a.parquet"])],
)
def test_a_table_is_read_as_of_a_time(
    clicks: Service, engine: Engine, as_of: int, files: list[str]
) -> None:
    engine.says("query", ask_for(as_of=as_of), {"read": [["id"]]}, MADE)
    ended = clicks.run("q1", query=SQL)
    assert failure(ended) is None
    paths = [str(clicks.data / each) for each in files]
    assert engine.asked[1] == [{"files": paths, "schema": FIELDS}]
    assert ended["statistics"]["totalBytesProcessed"] == str(24 if len(files) == 2 else 8)


@pytest.mark.parametrize(
    ("created", "as_of", "why"),
    [
        (NOW - DAY, NOW + 1, f"after {NOW}"),
        (NOW - DAY, NOW - DAY - 1, f"before {NOW - DAY}"),
        (NOW - 9 * DAY, NOW - 7 * DAY - 1, f"before {NOW - 7 * DAY}"),
    ],
)
def test_a_table_is_not_read_as_of_a_time_at_which_it_is_not_kept(
    clicks: Service, engine: Engine, created: int, as_of: int, why: str
) -> None:
    clicks.put(TABLE, "web.clicks", table(PLACE, creationTime=str(created)))
    engine.says("query", ask_for(as_of=as_of), {"read": [["id"]]}, MADE)
    label = f"{PROJECT}:web.clicks"
    text = f"Invalid snapshot time {as_of} for table {label}@{as_of}. Cannot read {why}."
    assert failure(clicks.run("q1", query=SQL)) == ("invalid", text)


def test_a_table_without_rows_has_its_columns(clicks: Service, engine: Engine) -> None:
    clicks.put(TABLE, "web.clicks", table(PLACE, schema={"fields": FIELDS}))
    clicks.put(TABLE, "web.bare", table(PLACE))
    asked = {"tables": [*ask_for()["tables"], *ask_for("bare")["tables"]]}
    engine.says("query", asked, {"read": [["id"], []]}, MADE)
    ended = clicks.run("q1", query=SQL)
    assert engine.asked[1] == [{"files": [], "schema": FIELDS}, {"files": [], "schema": []}]
    assert ended["statistics"]["totalBytesProcessed"] == "0"


def test_a_table_is_found_in_the_location_of_its_job(clicks: Service, engine: Engine) -> None:
    text = f"Not found: Table {PROJECT}:web.%s was not found in location %s"
    engine.says("query", ask_for("nothing"), MADE)
    found = failure(clicks.run("q1", query=SQL))
    assert found == ("notFound", text % ("nothing", "us-central1"))
    engine.says("query", ask_for(), {"read": [["id"]]}, MADE)
    for name, location, error in (
        ("q2", "EU", ("notFound", text % ("clicks", "EU"))),
        ("q3", "US-CENTRAL1", None),
        ("q4", None, None),  # a job that names none is where its tables are
    ):
        reference = {"jobId": name} | ({"location": location} if location else {})
        clicks.ask("POST", "jobs", {"jobReference": reference, "configuration": {"query": SQL}})
        assert failure(clicks.bigquery.jobs.wait(PROJECT, name, 30)) == error


def test_what_the_engine_refuses_or_leaves_unsaid_ends_the_job(
    clicks: Service, engine: Engine
) -> None:
    engine.says("query", {"error": {"reason": "invalidQuery", "message": "no such column"}})
    ended = clicks.run("q1", query=SQL)
    assert failure(ended) == ("invalidQuery", "no such column")
    assert ended["statistics"]["endTime"] == str(NOW)
    engine.says("query")
    text = "the local cloud's engine of BigQuery ended with 3; server.log may say why."
    assert failure(clicks.run("q2", query=SQL)) == ("internalError", text)
    engine.says("query", {"done": {"schema": None}})
    reason, text = failure(clicks.run("q3", query=SQL))
    assert (reason, text) == ("internalError", "An internal error occurred: KeyError: 'rows'")


def test_faults_are_of_jobs_that_run(clicks: Service, engine: Engine) -> None:
    engine.says("query", MADE)
    fault = Fault(service=FaultyService.BIGQUERY, kind=Kind.ERROR, method="query", match="q1",
                  code="503")  # fmt: skip
    clicks.faults.add(fault)
    assert failure(clicks.run("q0", query=SQL)) is None
    assert failure(clicks.run("q1", query=SQL)) == ("backendError", "fault 1 of the local cloud")
    delay = Fault(service=FaultyService.BIGQUERY, kind=Kind.DELAY, method="query", seconds=0.0)
    clicks.faults.add(delay)
    assert failure(clicks.run("q2", query=SQL)) is None
    assert clicks.faults.get(2).fired == 1


def test_a_job_that_a_server_left_is_carried_out_by_the_next(
    clicks: Service, engine: Engine
) -> None:
    engine.says("query", MADE)
    done = clicks.run("q1", query=SQL)
    clicks.put(JOB, "q2", done | {
        "id": f"{PROJECT}:us-central1.q2", "status": {"state": "RUNNING"},
        "jobReference": done["jobReference"] | {"jobId": "q2"},
    })  # fmt: skip
    clicks.bigquery.jobs.start()
    assert failure(clicks.bigquery.jobs.wait(PROJECT, "q2", 30)) is None
    assert len(engine.asked) == 2
    assert clicks.data.stat().st_mode & 0o777 == 0o700


def test_a_server_that_stops_leaves_its_jobs_to_the_next(clicks: Service, engine: Engine) -> None:
    hold = Fault(service=FaultyService.BIGQUERY, kind=Kind.HOLD, method="query")
    held = clicks.faults.add(hold)
    body = {"jobReference": {"jobId": "q1"}, "configuration": {"query": SQL}}
    clicks.ask("POST", "jobs", body)
    assert clicks.faults.wait_held(held, 30) == "query q1"
    begun = clicks.bigquery.jobs.wait(PROJECT, "q1", -1)
    clicks.bigquery.jobs.stop()
    clicks.bigquery.jobs._pool.shutdown(wait=True)
    assert (begun, engine.asked) == (clicks.get(JOB, "q1"), [])
    assert begun["status"] == {"state": "RUNNING"}


def test_a_server_that_stops_ends_the_engine_of_a_job(clicks: Service, engine: Engine) -> None:
    os.mkfifo(engine.folder / "query.says")  # the engine says nothing, ever
    clicks.ask("POST", "jobs", {"jobReference": {"jobId": "q1"}, "configuration": {"query": SQL}})
    running = clicks.bigquery.jobs._running
    [process] = wait_until(lambda: list(running))
    clicks.bigquery.jobs.stop()
    clicks.bigquery.jobs._pool.shutdown(wait=True)
    assert (process.wait(30), running) == (-9, set())
    assert clicks.get(JOB, "q1")["status"] == {"state": "RUNNING"}
    # One that begins now ends at once, and the job stays as well.
    clicks.bigquery.jobs._carry_out(PROJECT, "q1")
    with pytest.raises(BigQueryError, match="engine of BigQuery ended with -9"):
        clicks.bigquery.jobs.rows(table(PLACE), 0, 1, exact=False)
    assert clicks.get(JOB, "q1")["status"] == {"state": "RUNNING"}
