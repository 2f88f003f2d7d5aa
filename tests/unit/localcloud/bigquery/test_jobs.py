"""Jobs of BigQuery: what is taken on, what the engine is asked for, and what ends how."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest

from localgcp.access.guests import Guest
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
