"""The methods of BigQuery's REST API (https://docs.cloud.google.com/bigquery/docs/reference/rest)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from localgcp.access.callers import Guest
from localgcp.bigquery import catalog
from localgcp.bigquery.catalog import DATASET, JOB, TABLE, Body, Catalog, now, to_rest
from localgcp.bigquery.jobs import Jobs, has_ended, table_name
from localgcp.errors import BigQueryError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store

#: Fields that ``jobs.query`` shares with the configuration of a query job.
_OF_QUERIES: Final = (
    *("query", "useLegacySql", "maximumBytesBilled", "parameterMode", "queryParameters"),
    *("defaultDataset", "useQueryCache"),
)
#: Method -> parameters of Google's Python client that the discovery document lacks.
UNDESCRIBED: Final = {"bigquery.v2.jobs.get": ("projection",)}
#: Path of requests with a load job and the job's rows.
UPLOAD: Final = "/upload/bigquery/v2/"


@dataclass(frozen=True)
class Call:
    """One call of a method."""

    variables: tuple[str, ...]
    """Variables of the path: the project, then a job, or a dataset and a table."""
    body: Mapping[str, Any]
    query: Mapping[str, list[str]]
    guest: Guest | None
    """The Vertex AI job whose code sent the call; None for a program outside of jobs."""
    content: bytes | None = None
    """Uploaded rows of a load job."""


class BigQuery:
    """The BigQuery service: datasets, tables and jobs of all projects."""

    def __init__(self, home: Home, store: Store, faults: FaultTable, storage_url: str) -> None:
        self._store = store
        self._catalog = Catalog(home.database, home.bigquery)
        self.jobs = Jobs(home, self._catalog, store, faults, storage_url)

    def insert_job(self, call: Call) -> Body:
        """Create a job."""
        place = {"projectId": call.variables[0]}
        self._check(call, place, catalog.JOB_USERS, "bigquery.jobs.create")
        return self.jobs.begin(place["projectId"], call.body, call.guest, call.content)

    def cancel_job(self, call: Call) -> Body:
        """End a job as failed."""
        self.jobs.cancel(self.get_job(call))
        return {"kind": "bigquery#jobCancelResponse", "job": self.get_job(call)}

    def get_job(self, call: Call) -> Body:
        """Return a job."""
        project, name = call.variables
        job = self._catalog.get(JOB, project, name)
        location = call.query.get("location", [""])[0]
        if job is None or location.lower() not in ("", job["jobReference"]["location"].lower()):
            raise BigQueryError("notFound", f"Not found: Job {project}:{location or 'US'}.{name}")
        if call.guest is not None and job["_account"] != call.guest.account:
            raise BigQueryError("accessDenied", f"Access Denied: Job {job['id']}")
        return job

    def list_jobs(self, call: Call) -> Body:
        """Return a project's jobs, newest first; for a Vertex AI job, the jobs of its account."""
        with self._catalog.change() as rows:
            jobs = [job for *_, job in rows.all(JOB, call.variables[0])]
        if call.guest is not None:
            jobs = [job for job in jobs if job["_account"] == call.guest.account]
        jobs.sort(key=lambda job: int(job["statistics"]["creationTime"]), reverse=True)
        jobs = [{**job, "state": job["status"]["state"]} for job in jobs]
        return {"kind": "bigquery#jobList", "jobs": jobs}

    def query(self, call: Call) -> Body:
        """Run a query (``jobs.query``), and return the result if the query ends in time."""
        arguments = dict(call.body)
        configuration = {"query": {k: v for k, v in arguments.items() if k in _OF_QUERIES}}
        configuration["query"].setdefault("useLegacySql", True)
        reference = {k: arguments[k] for k in ("location",) if arguments.get(k)}
        if arguments.get("requestId"):
            reference["jobId"] = f"job_{arguments['requestId']}"
        body = {"jobReference": reference, "configuration": configuration}
        if arguments.get("dryRun"):
            body["configuration"]["dryRun"] = True
        job = self.insert_job(dataclasses.replace(call, body=body))
        if arguments.get("dryRun"):
            return {"jobReference": job["jobReference"], "jobComplete": True, **_totals(job)}
        return self._results(call, job, arguments)

    def results(self, call: Call) -> Body:
        """Return the result of a query (``jobs.getQueryResults``)."""
        arguments = {key: values[0] for key, values in call.query.items()}
        return self._results(call, self.get_job(call), arguments)

    def _results(self, call: Call, job: Body, arguments: Mapping[str, Any]) -> Body:
        reference = job["jobReference"]
        seconds = int(arguments.get("timeoutMs") or 10_000) / 1000
        job = self.jobs.wait(reference["projectId"], reference["jobId"], seconds) or job
        answer: Body = {"jobReference": reference, "jobComplete": has_ended(job)}
        if not has_ended(job):
            return answer
        if error := job["status"].get("errorResult"):
            raise BigQueryError(error["reason"], error["message"])
        place = job["configuration"].get("query", {}).get("destinationTable")
        if place is None:
            raise BigQueryError("invalid", "the job is not a query.")
        table = self._table(place)
        return answer | _totals(job) | {"schema": table["schema"]} | self._page(table, arguments)

    def rows(self, call: Call) -> Body:
        """Return rows of a table (``tabledata.list``)."""
        table = self.read_table(call)
        return self._page(table, {key: values[0] for key, values in call.query.items()})

    def _page(self, table: Body, arguments: Mapping[str, Any]) -> Body:
        if not re.fullmatch(r"[0-9]{0,18}", token := str(arguments.get("pageToken") or "")):
            raise BigQueryError("invalid", f"Invalid page token {token[:80]!r}.")
        start = int(token or arguments.get("startIndex") or 0)
        limit = int(10_000 if arguments.get("maxResults") is None else arguments["maxResults"])
        total = int(table["numRows"])
        options = arguments.get("formatOptions") or {}
        exact = arguments.get("formatOptions.useInt64Timestamp") or options.get("useInt64Timestamp")
        answer: Body = {"totalRows": str(total)}
        if limit and start < total:  # for an answer without rows, a client sends another request
            is_exact = str(exact).lower() == "true"
            answer["rows"] = self.jobs.rows(table, start, limit, exact=is_exact)
        if limit and start + limit < total:
            answer["pageToken"] = str(start + limit)
        return answer

    def insert_dataset(self, call: Call) -> Body:
        """Create a dataset."""
        project = call.variables[0]
        place = {"projectId": project}
        catalog.require(call.body, "datasetReference.datasetId")
        name = call.body["datasetReference"]["datasetId"]
        catalog.check_same(place, call.body["datasetReference"])
        self._check(call, place, catalog.WRITERS, "bigquery.datasets.create")
        moment = str(now())
        dataset = {
            "location": "US",
            **call.body,
            "kind": "bigquery#dataset",
            "id": f"{project}:{name}",
            "datasetReference": {"projectId": project, "datasetId": name},
            "creationTime": moment,
            "lastModifiedTime": moment,
        }
        with self._catalog.change() as rows:
            if rows.get(DATASET, project, name):
                raise BigQueryError("duplicate", f"Already Exists: Dataset {project}:{name}")
            rows.put(DATASET, project, name, dataset)
        return dataset

    def get_dataset(self, call: Call) -> Body:
        """Return a dataset."""
        project, name = call.variables[:2]
        place = {"projectId": project, "datasetId": name}
        self._check(call, place, catalog.READERS, "bigquery.datasets.get")
        if (dataset := self._catalog.get(DATASET, project, name)) is None:
            raise BigQueryError("notFound", f"Not found: Dataset {project}:{name}")
        return dataset

    def read_table(self, call: Call) -> Body:
        """Return a table."""
        keys = ("projectId", "datasetId", "tableId")
        place: dict[str, str] = dict(zip(keys, call.variables, strict=True))
        own = self._catalog.get(TABLE, place["projectId"], table_name(place)) or {}
        catalog.check_read(self._store, call.guest, place, own.get("_account"))
        return self._table(place)

    def _check(
        self, call: Call, place: Mapping[str, str], roles: frozenset[str], what: str
    ) -> None:
        catalog.check_roles(self._store, call.guest, place, roles, what)

    def _table(self, place: Mapping[str, str]) -> Body:
        table = self._catalog.get(TABLE, place["projectId"], table_name(place))
        if table is None:
            text = f"Not found: Table {place['projectId']}:{table_name(place)}"
            raise BigQueryError("notFound", text)
        return to_rest(table)


def parse_upload(target: str, body: bytes) -> tuple[str, bytes, bytes]:
    """Return the target, the job and the content of an upload. Raises BigQueryError."""
    path, _, query = target.partition("?")
    if parse_qs(query).get("uploadType") != ["multipart"]:
        text = "the local cloud does not support resumable uploads of rows. Give their size, below"
        text = f"{text} 5 MiB (load_table_from_file(…, size=…)), or load the rows from gs://."
        raise BigQueryError("notImplemented", text)
    mark = body.partition(b"\r\n")[0]
    parts = [part.partition(b"\r\n\r\n") for part in body.split(b"\r\n" + mark)]
    if not mark.startswith(b"--") or len(parts) != 3:
        text = "an upload must be a multipart body: the job, then its content."
        raise BigQueryError("invalid", text)
    return path.removeprefix("/upload"), parts[0][2], parts[1][2]


def with_texts(document: Any) -> Any:
    """Return a request with parameter values as text; Google's Python client sends numbers."""
    if isinstance(document, list):
        return [with_texts(element) for element in document]
    if not isinstance(document, dict):
        return document
    return {
        key: str(element).lower() if key == "value" and isinstance(element, int | float)
        else with_texts(element)
        for key, element in document.items()
    }  # fmt: skip


def _totals(job: Body) -> Body:
    query = job["statistics"]["query"]
    return {key: query[key] for key in ("totalBytesProcessed", "cacheHit", "schema")}


#: Method id without ``bigquery.v2.`` -> function.
METHODS: Final = {
    "jobs.insert": BigQuery.insert_job,
    "jobs.cancel": BigQuery.cancel_job,
    "jobs.get": BigQuery.get_job,
    "jobs.list": BigQuery.list_jobs,
    "jobs.query": BigQuery.query,
    "jobs.getQueryResults": BigQuery.results,
    "datasets.insert": BigQuery.insert_dataset,
    "datasets.get": BigQuery.get_dataset,
    "tables.get": BigQuery.read_table,
    "tabledata.list": BigQuery.rows,
}
