"""Jobs of BigQuery: what is taken on, what the engine is asked for, and what ends how."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from localgcp.access.callers import Guest
from localgcp.bigquery import catalog
from localgcp.bigquery.catalog import DATASET, JOB, TABLE, Catalog
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
)
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


def test_without_an_engine_a_job_says_how_to_install_it(warehouse: Service) -> None:
    assert warehouse.refusal("POST", "jobs", {"configuration": {"query": ONE}}) == (
        501,
        "notImplemented",
        "The BigQuery engine is not installed. Run `vt local bigquery --install` once.",
    )
    # Nor does one that was there when the job began.
    place = {"projectId": PROJECT, "datasetId": "d", "tableId": "t"}
    with pytest.raises(BigQueryError) as told:
        warehouse.bigquery.jobs.rows(table(place), 0, 1, exact=False)
    assert told.value.reason == "notImplemented"


def test_code_of_a_job_queries_as_its_account_and_no_more(clicks: Service, engine: Engine) -> None:
    set_grant(clicks.store, f"projects/{PROJECT}", "roles/bigquery.user", TRAINER)
    own = dataclasses.replace(clicks, guest=Guest(TRAINER))
    body = {"configuration": {"load": LOAD}}
    assert own.refusal("POST", "jobs", body) == (
        501, "notImplemented", "the code of a job may run only queries in the local cloud.",
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
    assert failure(ended) == (
        "accessDenied",
        f"Access Denied: Table {label}: the result of another account's query",
    )


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


def test_what_the_engine_refuses_or_leaves_unsaid_ends_the_job(
    clicks: Service, engine: Engine
) -> None:
    engine.says("query", {"error": {"reason": "invalidQuery", "message": "no such column"}})
    ended = clicks.run("q1", query=SQL)
    assert failure(ended) == ("invalidQuery", "no such column")
    assert ended["statistics"]["endTime"] == str(NOW)
    engine.says("query")
    text = (
        "the BigQuery engine of the local cloud ended with status 3; see server.log for the cause."
    )
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


STOPPED = ("stopped", "Job execution was cancelled: the local cloud was stopped.")


def test_a_server_that_stops_ends_waiting_jobs(clicks: Service, engine: Engine) -> None:
    hold = Fault(service=FaultyService.BIGQUERY, kind=Kind.HOLD, method="query")
    held = clicks.faults.add(hold)
    body = {"jobReference": {"jobId": "q1"}, "configuration": {"query": SQL}}
    clicks.ask("POST", "jobs", body)
    assert clicks.faults.wait_held(held, 30) == "query q1"
    clicks.bigquery.jobs.stop()
    assert failure(clicks.get(JOB, "q1")) == STOPPED
    clicks.bigquery.jobs.start()
    assert engine.asked == []


def test_a_server_that_stops_ends_the_engine_of_a_job(clicks: Service, engine: Engine) -> None:
    os.mkfifo(engine.folder / "query.says")  # the engine says nothing, ever
    clicks.ask("POST", "jobs", {"jobReference": {"jobId": "q1"}, "configuration": {"query": SQL}})
    running = clicks.bigquery.jobs._running
    [process] = wait_until(lambda: list(running))
    clicks.bigquery.jobs.stop()
    clicks.bigquery.jobs._pool.shutdown(wait=True)
    assert (process.wait(30), running) == (-9, {})
    assert failure(clicks.get(JOB, "q1")) == STOPPED
    # One that begins now ends at once.
    with pytest.raises(BigQueryError, match="ended with status -9"):
        clicks.bigquery.jobs.rows(table(PLACE), 0, 1, exact=False)


VERSION = [NOW - 10, ["a.parquet"], 3, {"id": 24}, FIELDS]
DATA = "datasets/web/tables/clicks/data"
WEB = {"location": "us-central1", "datasetReference": {"projectId": PROJECT, "datasetId": "web"}}


@pytest.fixture
def web(warehouse: Service) -> Service:
    """With a dataset, and a table of three rows."""
    warehouse.put(DATASET, "web", WEB)
    warehouse.put(TABLE, "web.clicks", table(PLACE, VERSION, schema={"fields": FIELDS}))
    return warehouse


def as_job(cloud: Service, account: str = TRAINER) -> Service:
    """The same, called by code of a job."""
    return dataclasses.replace(cloud, guest=Guest(account))


def job(name: str, created: int = NOW, account: str | None = None) -> dict[str, Any]:
    return {
        "id": f"{PROJECT}:EU.{name}",
        "jobReference": {"projectId": PROJECT, "jobId": name, "location": "EU"},
        "statistics": {"creationTime": str(created)},
        "status": {"state": "DONE"},
        "configuration": {"load": {}},
        "_account": account,
    }


def test_jobs_are_listed_the_newest_first_and_to_code_its_own(web: Service) -> None:
    jobs = [job("a", NOW - 5), job("b", NOW, TRAINER), job("c", NOW - 9), job("d", 999, TRAINER)]
    for each in jobs:
        web.put(JOB, each["jobReference"]["jobId"], each)
    listed = web.ask("GET", "jobs")
    assert listed == {
        "kind": "bigquery#jobList",
        "jobs": [{**jobs[n], "state": "DONE"} for n in (1, 0, 2, 3)],
    }
    own = as_job(web)
    assert [each["id"] for each in own.ask("GET", "jobs")["jobs"]] == [
        f"{PROJECT}:EU.b", f"{PROJECT}:EU.d",
    ]  # fmt: skip
    assert own.ask("GET", "jobs/b") == jobs[1]
    assert own.refusal("GET", "jobs/a") == (
        403, "accessDenied", f"Access Denied: Job {PROJECT}:EU.a",
    )  # fmt: skip


def test_a_query_that_runs_has_no_rows_yet(
    web: Service, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def wait(project: str, name: str, seconds: float) -> Any:
        waited.append(seconds)
        return web.get(JOB, name) if (project, name) == (PROJECT, "j1") else None

    monkeypatch.setattr(web.bigquery.jobs, "wait", wait)
    running = job("j1") | {"status": {"state": "RUNNING"}}
    web.put(JOB, "j1", running)
    for query in ("", "?timeoutMs=0", "?timeoutMs=1500"):
        assert web.ask("GET", f"queries/j1{query}") == {
            "jobReference": running["jobReference"], "jobComplete": False,
        }  # fmt: skip
    assert waited == [10.0, 0.0, 1.5]
    web.put(JOB, "j1", job("j1"))
    assert web.refusal("GET", "queries/j1") == (400, "invalid", "the job is not a query.")
    failed = {"state": "DONE", "errorResult": {"reason": "backendError", "message": "no"}}
    web.put(JOB, "j1", job("j1") | {"status": failed})
    assert web.refusal("GET", "queries/j1") == (503, "backendError", "no")


READER, EDITOR, USER = "roles/bigquery.dataViewer", "roles/bigquery.dataEditor", "roles/viewer"
NEW_DATASET = {"datasetReference": {"datasetId": "new"}}


@pytest.mark.parametrize(
    ("verb", "path", "body", "what", "on"),
    [
        ("POST", "jobs", {"configuration": {"query": SQL}}, "bigquery.jobs.create", ""),
        ("POST", "queries", SQL, "bigquery.jobs.create", ""),
        ("POST", "datasets", NEW_DATASET, "bigquery.datasets.create", ""),
        ("GET", "datasets/web", None, "bigquery.datasets.get", ".web"),
        ("GET", DATA, None, "bigquery.tables.getData", ".web.clicks"),
    ],
)
def test_code_of_a_job_calls_what_its_account_may(
    web: Service, verb: str, path: str, body: Any, what: str, on: str
) -> None:
    text = f"Access Denied: {PROJECT}{on}: {what} denied (or it may not exist)."
    text = f"{text} The job runs as {TRAINER}."
    assert as_job(web).refusal(verb, path, body) == (403, "accessDenied", text)


def test_code_of_a_job_reads_a_table_with_one_role(web: Service) -> None:
    set_grant(web.store, f"projects/{PROJECT}/datasets/web", READER, TRAINER)
    assert as_job(web).ask("GET", "datasets/web/tables/clicks")["tableReference"] == PLACE


def test_a_result_is_read_by_the_account_whose_job_made_it(web: Service) -> None:
    place = {"projectId": PROJECT, "datasetId": "_r", "tableId": "anon"}
    web.put(TABLE, "_r.anon", table(place, _account=TRAINER))
    path = "datasets/_r/tables/anon"
    assert as_job(web).ask("GET", f"{path}/data") == {"totalRows": "0"}
    assert as_job(web).ask("GET", path)["tableReference"] == place
    assert as_job(web, "other@x").refusal("GET", path)[1] == "accessDenied"


DAY = 24 * 3600 * 1000


@pytest.fixture
def kept(tmp_path: Path) -> Catalog:
    data = tmp_path / "bigquery"
    data.mkdir()
    return Catalog(tmp_path / "cloud.sqlite", data)


def version(time: int, *files: str, rows: int = 1) -> list[Any]:
    return [time, list(files), rows, {"a": 8, "b": 3}, []]


def test_files_stay_for_seven_days_and_as_long_as_their_version_is_the_last(
    kept: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100 * DAY
    monkeypatch.setattr(catalog, "now", lambda: now)
    for name in ("old", "week", "then", "last", "ancient", "expired", "nobody"):
        (kept.data / name).write_text(name)
    (kept.data / "folder").mkdir()
    (kept.data / "folder" / "part").write_text("")
    with kept.change() as rows:
        rows.put(TABLE, "p", "d.t", {"versions": [
            version(now - 20 * DAY, "old"),
            version(now - 9 * DAY, "week"),  # over for exactly seven days
            version(now - 7 * DAY, "then"),  # read as of six days ago
            version(now - 5 * DAY, "last"),
        ]})  # fmt: skip
        rows.put(TABLE, "p", "d.u", {"versions": [version(1, "ancient")]})
        rows.put(TABLE, "p", "d.v", {"versions": [version(1, "expired")], "expirationTime": "2"})
    kept.clean()
    assert sorted(each.name for each in kept.data.iterdir()) == ["ancient", "last", "then"]
    with kept.change() as rows:
        names = {name: [each[1] for each in body["versions"]] for *_, name, body in rows.all(TABLE)}
    assert names == {"d.t": [["then"], ["last"]], "d.u": [["ancient"]]}


def test_roles_have_the_rights_of_googles_table() -> None:
    all_ = {"roles/bigquery.admin", "roles/owner"}
    writers = all_ | {"roles/bigquery.dataEditor", "roles/bigquery.dataOwner", "roles/editor"}
    assert writers == catalog.WRITERS
    assert writers | {"roles/bigquery.dataViewer", "roles/viewer"} == catalog.READERS
    askers = {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
    assert all_ | askers == catalog.JOB_USERS
