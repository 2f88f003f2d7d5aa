"""Methods of BigQuery: what each answers, pages of results, and what code of a job may call."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from localgcp.access.guests import Guest
from localgcp.bigquery import service
from localgcp.bigquery.catalog import DATASET, JOB, TABLE
from tests.unit.localcloud.bigquery.conftest import (
    FIELDS,
    MADE,
    NOW,
    OTHER,
    PLACE,
    PROJECT,
    SQL,
    Engine,
    Service,
    table,
)
from tests.unit.localcloud.conftest import TRAINER, set_grant

VERSION = [NOW - 10, ["a.parquet"], 3, {"id": 24}, FIELDS]
SIZES = {"numRows": "3", "numBytes": "24", "numTotalLogicalBytes": "24"}
ROWS = [{"f": [{"v": "1"}]}, {"f": [{"v": "2"}]}]
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


def test_a_dataset_is_made_with_what_it_is_given(warehouse: Service) -> None:
    reference = {"datasetId": "web"}
    body = {"datasetReference": reference, "friendlyName": "Web", "id": "other"}
    made = warehouse.ask("POST", "datasets", body)
    assert made == {
        "location": "US",
        "friendlyName": "Web",
        "kind": "bigquery#dataset",
        "id": f"{PROJECT}:web",
        "datasetReference": {"projectId": PROJECT, "datasetId": "web"},
        "creationTime": str(NOW),
        "lastModifiedTime": str(NOW),
    }
    assert warehouse.ask("GET", "datasets/web") == made
    assert warehouse.refusal("POST", "datasets", body) == (
        409, "duplicate", f"Already Exists: Dataset {PROJECT}:web",
    )  # fmt: skip
    assert warehouse.refusal("GET", "datasets/other") == (
        404, "notFound", f"Not found: Dataset {PROJECT}:other",
    )  # fmt: skip
    in_eu = {"datasetReference": {"datasetId": "eu"}, "location": "EU"}
    assert warehouse.ask("POST", "datasets", in_eu)["location"] == "EU"


def test_a_table_is_made_read_listed_and_deleted(web: Service) -> None:
    body = {"tableReference": {"tableId": "copy"}, "schema": {"fields": FIELDS}}
    made = web.ask("POST", "datasets/web/tables", body)
    assert made == {
        **table(OTHER, schema={"fields": FIELDS}),
        "creationTime": str(NOW), "lastModifiedTime": str(NOW),
        "numRows": "0", "numBytes": "0", "numTotalLogicalBytes": "0",
    }  # fmt: skip
    assert web.ask("GET", "datasets/web/tables/copy") == made
    assert web.refusal("POST", "datasets/web/tables", body) == (
        409, "duplicate", f"Already Exists: Table {PROJECT}:web.copy",
    )  # fmt: skip
    web.put(TABLE, "web2.clicks", table(PLACE | {"datasetId": "web2"}))
    clicks = table(PLACE, VERSION, schema={"fields": FIELDS}) | SIZES
    assert web.ask("GET", "datasets/web/tables/clicks") == clicks
    assert web.ask("GET", "datasets/web/tables") == {
        "kind": "bigquery#tableList", "tables": [clicks, made], "totalItems": 2,
    }  # fmt: skip
    assert web.ask("DELETE", "datasets/web/tables/copy") == {}
    gone = (404, "notFound", f"Not found: Table {PROJECT}:web.copy")
    assert web.refusal("GET", "datasets/web/tables/copy") == gone
    assert web.refusal("DELETE", "datasets/web/tables/copy") == gone
    assert web.refusal("GET", "datasets/none/tables") == (
        404, "notFound", f"Not found: Dataset {PROJECT}:none",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["view", "materializedView"])
def test_there_are_no_views(web: Service, kind: str) -> None:
    body = {"tableReference": {"tableId": "v"}, kind: {"query": "SELECT 1"}}
    assert web.refusal("POST", "datasets/web/tables", body) == (
        501, "notImplemented", "the local cloud has no views.",
    )  # fmt: skip


@pytest.mark.parametrize("token", ["x", "-1", "1%0A", "9" * 19])
def test_a_page_of_rows_begins_where_another_ended(web: Service, token: str) -> None:
    said = f"Invalid page token {token.replace('%0A', chr(10))!r}."
    assert web.refusal("GET", f"{DATA}?pageToken={token}") == (400, "invalid", said)


def test_a_job_is_found_in_its_location_alone(web: Service) -> None:
    web.put(JOB, "j1", job("j1"))
    for query in ("", "?location=EU", "?location=eu"):
        assert web.ask("GET", f"jobs/j1{query}") == job("j1")
    where = f"Not found: Job {PROJECT}:"
    assert web.refusal("GET", "jobs/j1?location=US") == (404, "notFound", f"{where}US.j1")
    assert web.refusal("GET", "jobs/j2") == (404, "notFound", f"{where}US.j2")
    assert web.refusal("GET", "jobs/j2?location=EU") == (404, "notFound", f"{where}EU.j2")


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


QUERY = {
    "query": "SELECT @n", "useLegacySql": False, "maximumBytesBilled": "99999999",
    "parameterMode": "NAMED", "queryParameters": [{"name": "n"}],
    "defaultDataset": {"datasetId": "web"}, "useQueryCache": False,
}  # fmt: skip


def test_a_query_is_answered_with_its_rows(web: Service, engine: Engine) -> None:
    engine.says("query", {"tables": []}, {"read": []}, MADE)
    engine.says("read", {"done": {"rows": ROWS[:1]}})
    given = {
        "requestId": "r1", "location": "EU", "maxResults": 1, "timeoutMs": 30_000,
        "formatOptions": {"useInt64Timestamp": True}, "kind": "bigquery#queryRequest",
    }  # fmt: skip
    found = web.ask("POST", "queries", QUERY | given)
    assert found == {
        "jobReference": {"projectId": PROJECT, "jobId": "job_r1", "location": "EU"},
        "jobComplete": True, "totalBytesProcessed": "0", "cacheHit": False,
        "schema": {"fields": FIELDS}, "totalRows": "2", "rows": ROWS[:1], "pageToken": "1",
    }  # fmt: skip
    assert engine.asked[0]["parameters"] == [{"name": "n"}]
    assert engine.asked[0]["dataset"] == "web"
    assert (engine.asked[-1]["limit"], engine.asked[-1]["exactTimes"]) == (1, True)
    configuration = web.get(JOB, "job_r1")["configuration"]
    place = configuration["query"].pop("destinationTable")
    assert configuration == {
        "jobType": "QUERY", "query": QUERY | {"writeDisposition": "WRITE_TRUNCATE"},
    }  # fmt: skip
    # The same by the job's id.
    again = web.ask("GET", "queries/job_r1?maxResults=1&location=EU")
    assert again == found
    # A result that is gone is none.
    web.ask("DELETE", f"datasets/{place['datasetId']}/tables/{place['tableId']}")
    label = f"{PROJECT}:{place['datasetId']}.{place['tableId']}"
    gone = (404, "notFound", f"Not found: Table {label}")
    assert web.refusal("GET", "queries/job_r1") == gone


def test_a_dry_run_is_answered_without_rows(web: Service, engine: Engine) -> None:
    engine.says("query", {"tables": []}, {"read": []}, {"done": {"schema": FIELDS}})
    assert web.ask("POST", "queries", SQL | {"dryRun": True}) == {
        "jobReference": {"projectId": PROJECT, "location": "US"}, "jobComplete": True,
        "totalBytesProcessed": "0", "cacheHit": False, "schema": {"fields": FIELDS},
    }  # fmt: skip
    assert engine.asked[0]["dryRun"] is True


def test_a_query_is_of_legacy_sql_unless_it_says_otherwise(web: Service, engine: Engine) -> None:
    assert web.refusal("POST", "queries", {"query": "SELECT 1"}) == (
        400, "invalid", "the local cloud has no legacy SQL: useLegacySql: false",
    )  # fmt: skip
    assert web.refusal("POST", "queries", {"query": "SELECT 1", "dryRun": True})[1] == "invalid"


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
    assert web.refusal("GET", "queries/j1") == (400, "invalid", "the job is no query.")
    failed = {"state": "DONE", "errorResult": {"reason": "backendError", "message": "no"}}
    web.put(JOB, "j1", job("j1") | {"status": failed})
    assert web.refusal("GET", "queries/j1") == (503, "backendError", "no")


READER, EDITOR, USER = "roles/bigquery.dataViewer", "roles/bigquery.dataEditor", "roles/viewer"
NEW_TABLE = {"tableReference": {"tableId": "copy"}}
NEW_DATASET = {"datasetReference": {"datasetId": "new"}}


@pytest.mark.parametrize(
    ("verb", "path", "body", "what", "on"),
    [
        ("POST", "jobs", {"configuration": {"query": SQL}}, "bigquery.jobs.create", ""),
        ("POST", "queries", SQL, "bigquery.jobs.create", ""),
        ("POST", "datasets", NEW_DATASET, "bigquery.datasets.create", ""),
        ("GET", "datasets/web/tables", None, "bigquery.datasets.get", ".web"),
        ("GET", DATA, None, "bigquery.tables.getData", ".web.clicks"),
        ("DELETE", "datasets/web/tables/clicks", None, "bigquery.tables.delete", ".web.clicks"),
    ],
)
def test_code_of_a_job_calls_what_its_account_may(
    web: Service, verb: str, path: str, body: Any, what: str, on: str
) -> None:
    text = f"Access Denied: {PROJECT}{on}: {what} denied (or it may not exist)."
    text = f"{text} The job runs as {TRAINER}."
    assert as_job(web).refusal(verb, path, body) == (403, "accessDenied", text)


def test_code_of_a_job_reads_with_one_role_and_makes_tables_with_another(web: Service) -> None:
    own, path = as_job(web), "datasets/web/tables"
    set_grant(web.store, f"projects/{PROJECT}/datasets/web", READER, TRAINER)
    assert own.ask("GET", path)["totalItems"] == 1
    text = (
        f"Access Denied: {PROJECT}.web.copy: bigquery.tables.create denied (or it may not exist)."
    )
    refused = own.refusal("POST", path, NEW_TABLE)
    assert refused == (403, "accessDenied", f"{text} The job runs as {TRAINER}.")
    set_grant(web.store, f"projects/{PROJECT}/datasets/web", EDITOR, TRAINER)
    assert own.ask("POST", path, NEW_TABLE)["tableReference"] == OTHER
    assert own.ask("DELETE", f"{path}/copy") == {}


def test_a_result_is_read_by_the_account_whose_job_made_it(web: Service) -> None:
    place = {"projectId": PROJECT, "datasetId": "_r", "tableId": "anon"}
    web.put(TABLE, "_r.anon", table(place, _account=TRAINER))
    path = "datasets/_r/tables/anon"
    assert as_job(web).ask("GET", f"{path}/data") == {"totalRows": "0"}
    assert as_job(web).ask("GET", path)["tableReference"] == place
    assert as_job(web, "other@x").refusal("GET", path)[1] == "accessDenied"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"value": 1}, {"value": "1"}),
        ({"value": 1.5}, {"value": "1.5"}),
        ({"value": True}, {"value": "true"}),
        ({"value": "A"}, {"value": "A"}),
        ({"a": 1, "b": [{"value": 2}, 3]}, {"a": 1, "b": [{"value": "2"}, 3]}),
        ({"value": {"value": 7}}, {"value": {"value": "7"}}),
    ],
)
def test_values_of_parameters_are_texts(given: Any, wanted: Any) -> None:
    assert service.with_texts(given) == wanted
