"""BigQuery jobs in processes of the engine; a new server restarts a killed server's jobs."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from localgcp.access.callers import Guest
from localgcp.bigquery import catalog, engine_environment
from localgcp.bigquery.catalog import (
    DATASET,
    JOB,
    KEPT_MILLISECONDS,
    TABLE,
    Body,
    Catalog,
    Rows,
    Version,
    add_version,
    now,
    version_of,
)
from localgcp.errors import BigQueryError
from localgcp.faults.model import Service
from localgcp.faults.table import FaultTable
from localgcp.home import Home, open_private
from localgcp.inventory.store import Store
from localgcp.runner.gcsfuse import storage_client

#: Lifetime of an anonymous table with a result.
RESULT_MILLISECONDS: Final = 24 * 3600 * 1000
#: Maximum seconds of a job.
MOST_SECONDS: Final = 600.0


class Jobs:
    """Runs BigQuery jobs, two at a time."""

    def __init__(
        self, home: Home, catalog: Catalog, store: Store, faults: FaultTable, storage_url: str
    ) -> None:
        self._home, self._catalog, self._store = home, catalog, store
        self._faults, self._storage_url = faults, storage_url
        self._pool = ThreadPoolExecutor(2)
        self._stopping = threading.Event()
        self._running: dict[subprocess.Popen[str], str] = {}

    def start(self) -> None:
        """Delete expired rows, and resume the unfinished jobs of an earlier server."""
        self._home.bigquery.mkdir(0o700, exist_ok=True)
        self._catalog.clean()
        with self._catalog.change() as rows:
            unfinished = [(p, name) for _, p, name, job in rows.all(JOB) if not has_ended(job)]
        for project, name in unfinished:
            self._pool.submit(self._run, project, name)

    def stop(self) -> None:
        """End all jobs as failed."""
        self._stopping.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._catalog.change() as rows:
            unfinished = [job for *_, job in rows.all(JOB) if not has_ended(job)]
        for job in unfinished:
            self.cancel(job, "the local cloud was stopped.")
        for process in list(self._running):
            process.kill()

    def cancel(self, job: Body, reason: str = "user requested cancellation.") -> None:
        """End an active job as failed."""
        text = f"Job execution was cancelled: {reason}"
        self._end(job, {"error": BigQueryError("stopped", text)}, "")
        for process, id_ in list(self._running.items()):
            if id_ == job["id"]:
                process.kill()

    def begin(
        self, project: str, body: Mapping[str, Any], guest: Guest | None, content: bytes | None
    ) -> Body:
        """Accept a job; ``content`` has the uploaded rows of a load job. Raises BigQueryError."""
        catalog.require(body, "configuration")
        reference, configuration = dict(body.get("jobReference") or {}), body["configuration"]
        name = reference.get("jobId") or uuid.uuid4().hex
        location = reference.get("location") or "US"
        kind = next((kind for kind in ("query", "load", "extract") if kind in configuration), None)
        if kind is None:
            text = "the local cloud does not support jobs of this type."
            raise BigQueryError("notImplemented", text)
        if content is not None and kind != "load":
            text = f"Uploaded content requires a load job, not a job of type {kind}."
            raise BigQueryError("invalid", text)
        catalog.check_job(kind, reference, configuration[kind], has_content=content is not None)
        if engine_environment().python is None:
            raise not_installed()
        job: Body = {
            "kind": "bigquery#job",
            "id": f"{project}:{location}.{name}",
            "jobReference": {"projectId": project, "jobId": name, "location": location},
            "configuration": {**configuration, "jobType": kind.upper()},
            "status": {"state": "RUNNING"},
            "statistics": {"creationTime": str(now()), "startTime": str(now())},
            "user_email": guest.account if guest else "owner@localhost",
            "_account": guest.account if guest else None,
            "_located": bool(reference.get("location")),
        }
        if configuration.get("dryRun"):
            return self._dry_run(job)
        if guest is not None and kind != "query":
            text = "the code of a job may run only queries in the local cloud."
            raise BigQueryError("notImplemented", text)
        if content is not None:
            job["_upload"] = uuid.uuid4().hex
            with open_private(self._home.bigquery / job["_upload"], "wb") as file:
                file.write(content)
        if kind == "query" and not configuration["query"].get("destinationTable"):
            place = {"projectId": project, "datasetId": f"_{uuid.uuid4().hex}"}
            place["tableId"] = f"anon{uuid.uuid4().hex}"
            query = {**configuration["query"], "destinationTable": place}
            job["configuration"]["query"] = {**query, "writeDisposition": "WRITE_TRUNCATE"}
        with self._catalog.change() as rows:
            if rows.get(JOB, project, name):
                raise BigQueryError("duplicate", f"Already Exists: Job {job['id']}")
            rows.put(JOB, project, name, job)
        self._pool.submit(self._run, project, name)
        return job

    def wait(self, project: str, name: str, seconds: float) -> Body | None:
        """Wait at most ``seconds`` for the end of a job; return the job, or None if missing."""
        deadline = now() + seconds * 1000
        while (job := self._catalog.get(JOB, project, name)) and not has_ended(job):
            if now() > deadline or self._stopping.wait(0.05):
                break
        return job

    def rows(self, table: Body, offset: int, limit: int, *, exact: bool) -> list[Any]:
        """Return rows of a table in the form of REST."""
        request = {"operation": "read", "table": self._files(table, None)}
        times = {"offset": offset, "limit": limit, "exactTimes": exact}
        return self._engine({**request, **times})["rows"]

    def _dry_run(self, job: Body) -> Body:
        if "query" not in job["configuration"]:
            raise BigQueryError("invalid", "a dry run is supported only for queries.")
        answer = self._query(job, "")
        job["jobReference"].pop("jobId")
        job["statistics"] |= answer["statistics"]
        return {**job, "status": {"state": "DONE"}}

    def _run(self, project: str, name: str) -> None:
        job = self._catalog.get(JOB, project, name)
        if job is None or has_ended(job):
            return
        output = self._home.bigquery / f"{uuid.uuid4().hex}.parquet"
        kind = job["configuration"]["jobType"].lower()
        try:
            for entry in self._faults.count_call(
                Service.BIGQUERY, kind, lambda _: [name], lambda _: True
            ):
                self._faults.meet(entry, f"{kind} {name}", self._stopping, _fault)
            work = {"query": self._query, "load": self._load, "extract": self._export}[kind]
            self._end(job, work(job, str(output)), str(output.name))
        except Exception as error:
            if not isinstance(error, BigQueryError):
                text = f"An internal error occurred: {type(error).__name__}: {error}"
                error = BigQueryError("internalError", text)
            self._end(job, {"error": error}, "")

    def _end(self, job: Body, made: Mapping[str, Any], file: str) -> None:
        # Write the result and the state of an active job in one transaction.
        project, name = job["jobReference"]["projectId"], job["jobReference"]["jobId"]
        error = made.get("error")
        with self._catalog.change() as rows:
            if (current := rows.get(JOB, project, name)) is None or has_ended(current):
                return
            try:
                if error is None and "schema" in made:
                    _write(self._store, rows, job, made, file)
            except BigQueryError as refused:
                error = refused
            job["statistics"] |= {"endTime": str(now()), **made.get("statistics", {})}
            job["status"] = {"state": "DONE"}
            if error is not None:
                problem = {"reason": error.reason, "message": str(error)}
                job["status"] |= {"errorResult": problem, "errors": [problem]}
            rows.put(JOB, project, name, job)
        if upload := job.get("_upload"):
            (self._home.bigquery / upload).unlink(missing_ok=True)

    def _query(self, job: Body, output: str) -> dict[str, Any]:
        config = job["configuration"]["query"]
        if config.get("useLegacySql", True):
            text = "the local cloud does not support legacy SQL; set useLegacySql: false"
            raise BigQueryError("invalid", text)
        tables: list[tuple[Body, int | None]] = []
        read: list[int] = []

        def find(references: list[dict[str, Any]]) -> object:
            tables.extend(
                (self._found(reference, reference["asOf"], job), reference["asOf"])
                for reference in references
            )
            return [self._files(*table) for table in tables]

        def weigh(columns: list[list[str]]) -> object:
            for table, names in zip(tables, columns, strict=True):
                version = version_of(*table)  # a table without rows has no version
                read.append(sum(version.bytes[name] for name in names) if version else 0)
            limit, needed = config.get("maximumBytesBilled"), billed(read)
            if output and limit and needed > int(limit):
                text = (
                    f"Query exceeded limit for bytes billed: {limit}. {needed} or higher required."
                )
                raise BigQueryError("bytesBilledLimitExceeded", text)
            return True

        request = {
            "operation": "query",
            "sql": config["query"],
            "parameters": config.get("queryParameters", []),
            "project": job["jobReference"]["projectId"],
            "dataset": (config.get("defaultDataset") or {}).get("datasetId"),
            "dryRun": not output,
            "output": output,
        }
        answer = self._engine(request, {"tables": find, "read": weigh}, job)
        references = {table["id"]: table["tableReference"] for table, _ in tables}
        statistics = {
            "totalBytesProcessed": str(sum(read)),
            "query": {
                "statementType": "SELECT",
                "cacheHit": False,
                "totalBytesProcessed": str(sum(read)),
                "totalBytesBilled": str(billed(read) if output else 0),
                "referencedTables": list(references.values()),
                "schema": {"fields": answer["schema"]},
            },
        }
        return {**answer, "statistics": statistics}

    def _load(self, job: Body, output: str) -> dict[str, Any]:
        config = job["configuration"]["load"]
        place = config["destinationTable"]
        before = self._catalog.get(TABLE, place["projectId"], table_name(place)) or {}
        known = {} if config.get("autodetect") else before.get("schema")
        fields = (config.get("schema") or known or {}).get("fields", [])
        is_text = config.get("sourceFormat", "CSV") != "PARQUET"
        if is_text and not fields and not config.get("autodetect"):
            raise BigQueryError("invalid", "No schema specified on job or table.")
        with tempfile.TemporaryDirectory(dir=self._home.bigquery) as folder:
            if upload := job.get("_upload"):
                path = self._home.bigquery / upload
                files, size = [str(path)], path.stat().st_size
            else:
                files, size = self._fetched(config.get("sourceUris", []), Path(folder))
            request = {"operation": "load", "config": config, "schema": fields, "files": files}
            made = self._engine({**request, "output": output}, {}, job)
        statistics = {
            "inputFiles": str(len(files)),
            "inputFileBytes": str(size),
            "outputRows": str(made["rows"]),
            "outputBytes": str(sum(made["bytes"].values())),
        }
        return {**made, "statistics": {"load": statistics}}

    def _export(self, job: Body, output: str) -> dict[str, Any]:
        config = job["configuration"]["extract"]
        place, uris = config["sourceTable"], config.get("destinationUris", [])
        table = self._found(place, None, job)
        if len(uris) != 1 or not uris[0].startswith("gs://"):
            raise BigQueryError("invalid", "the local cloud exports to one gs:// URI per job.")
        request = {"operation": "export", "config": config, "table": self._files(table, None)}
        try:
            self._engine({**request, "output": output}, {}, job)
            bucket, _, name = uris[0].removeprefix("gs://").partition("/")
            client = storage_client(self._storage_url)
            client.bucket(bucket).blob(name.replace("*", "0" * 12)).upload_from_filename(output)
        finally:
            Path(output).unlink(missing_ok=True)
        return {"statistics": {"extract": {"destinationUriFileCounts": ["1"]}}}

    def _found(self, place: Mapping[str, str], as_of: int | None, job: Body) -> Body:
        # https://docs.cloud.google.com/bigquery/docs/access-historical-data
        project, name = place["projectId"], table_name(place)
        label = f"{project}:{name}"
        table = self._catalog.get(TABLE, project, name)
        catalog.check_read(self._store, guest_of(job), place, (table or {}).get("_account"))
        location = job["jobReference"]["location"]
        if table is None or (job["_located"] and table["location"].lower() != location.lower()):
            text = f"Not found: Table {label} was not found in location {location}"
            raise BigQueryError("notFound", text)
        if as_of is not None:
            first, last = max(int(table["creationTime"]), now() - KEPT_MILLISECONDS), now()
            if not first <= as_of <= last:
                limit = f"before {first}" if as_of < first else f"after {last}"
                text = f"Invalid snapshot time {as_of} for table {label}@{as_of}. Cannot read"
                raise BigQueryError("invalid", f"{text} {limit}.")
        return table

    def _files(self, table: Body, as_of: int | None) -> dict[str, Any]:
        version = version_of(table, as_of)
        if version is None:
            return {"files": [], "schema": (table.get("schema") or {}).get("fields", [])}
        files = [str(self._home.bigquery / file) for file in version.files]
        return {"files": files, "schema": version.schema}

    def _engine(
        self,
        request: Mapping[str, Any],
        answers: Mapping[str, Callable[[Any], object]] = {},
        job: Body | None = None,
    ) -> dict[str, Any]:
        # ``answers`` has a function for each kind of request from the engine.
        python = engine_environment().python
        if python is None:
            raise not_installed()
        home = str(self._home.bigquery)
        process = subprocess.Popen(
            [str(python), "-I", str(Path(__file__).with_name("engine.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env={"HOME": home},  # lifecycle.end_work ends processes with this home
            start_new_session=True,
        )
        self._running[process] = job["id"] if job else ""
        # A cancellation before the process was registered could not kill the process.
        if self._stopping.is_set() or self._was_cancelled(job):
            process.kill()
        seconds, expired = time_limit(job), threading.Event()
        timer = threading.Timer(seconds, lambda: (expired.set(), process.kill()))
        timer.daemon = True
        timer.start()
        try:
            reply = _exchange(process, {**request, "folder": home})
            while kind := next((kind for kind in answers if kind in reply), None):
                reply = _exchange(process, answers[kind](reply[kind]))
        except BigQueryError as error:
            if not expired.is_set():
                raise
            raise BigQueryError("timeout", f"Operation timed out after {seconds:g} s.") from error
        finally:
            timer.cancel()
            self._running.pop(process)
            process.kill()
            process.communicate()
        if "done" not in reply:
            raise BigQueryError(**reply["error"])
        return reply["done"]

    def _was_cancelled(self, job: Body | None) -> bool:
        reference = job["jobReference"] if job else {}
        if "jobId" not in reference:
            return False
        row = self._catalog.get(JOB, reference["projectId"], reference["jobId"])
        return row is not None and has_ended(row)

    def _fetched(self, uris: Iterable[str], folder: Path) -> tuple[list[str], int]:
        files, size, client = list[str](), 0, storage_client(self._storage_url)
        for uri in uris:
            bucket, _, pattern = uri.removeprefix("gs://").partition("/")
            form = pattern.replace("[", "[[]")
            candidates = client.list_blobs(bucket, prefix=pattern.partition("*")[0])
            blobs = [blob for blob in candidates if fnmatch.fnmatchcase(blob.name, form)]
            if not blobs:
                raise BigQueryError("notFound", f"Not found: URI {uri}")
            for blob in blobs:
                files.append(str(folder / f"{len(files)}{Path(blob.name).suffix}"))
                blob.download_to_filename(files[-1])
                size += int(blob.size or 0)
        return files, size


def _fault(_code: str, text: str) -> BigQueryError:
    return BigQueryError("backendError", text)


def time_limit(job: Body | None) -> float:
    """Return the engine's time limit for a job, in seconds."""
    timeout = (job or {}).get("configuration", {}).get("jobTimeoutMs")
    return min(int(timeout) / 1000, MOST_SECONDS) if timeout else MOST_SECONDS


def _exchange(process: subprocess.Popen[str], message: object) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())
    except (OSError, ValueError):
        text = f"the BigQuery engine of the local cloud ended with status {process.wait()}"
        raise BigQueryError("internalError", f"{text}; see server.log for the cause.") from None


def not_installed() -> BigQueryError:
    """Return the error for a machine without the engine."""
    text = "The BigQuery engine is not installed. Run `vt local bigquery --install` once."
    return BigQueryError("notImplemented", text)


def guest_of(job: Body) -> Guest | None:
    """Return the Vertex AI job whose code created a BigQuery job, or None."""
    return None if job["_account"] is None else Guest(job["_account"])


def has_ended(job: Body) -> bool:
    """Return whether a job has ended."""
    return job["status"]["state"] == "DONE"


def billed(read: Iterable[int]) -> int:
    """Return the billed bytes for the bytes read from each table.

    BigQuery rounds up to MiB, and the minimum is 10 MiB per table
    (https://cloud.google.com/bigquery/pricing#on_demand_pricing).

    >>> billed([0]), billed([1, 11_000_000])
    (0, 22020096)
    """
    return sum(max(10, -(-size // (1 << 20))) << 20 for size in read if size)


def table_name(place: Mapping[str, str]) -> str:
    """Return the name of a table within its project."""
    return f"{place['datasetId']}.{place['tableId']}"


def new_table(place: Mapping[str, str], location: str, body: Mapping[str, Any] = {}) -> Body:
    """Return a new table without rows."""
    project, moment = place["projectId"], str(now())
    return {
        **body,
        "kind": "bigquery#table",
        "id": f"{project}:{table_name(place)}",
        "tableReference": dict(place),
        "type": "TABLE",
        "location": location,
        "creationTime": moment,
        "lastModifiedTime": moment,
        "versions": [],
    }


def _write(store: Store, rows: Rows, job: Body, made: Mapping[str, Any], file: str) -> None:
    kind = job["configuration"]["jobType"].lower()
    config = job["configuration"][kind]
    place, location = config["destinationTable"], job["jobReference"]["location"]
    project, name = place["projectId"], table_name(place)
    label, table = f"{project}:{name}", rows.get(TABLE, project, name)
    if not place["datasetId"].startswith("_"):
        permission = "bigquery.tables.updateData"
        catalog.check_roles(store, guest_of(job), place, catalog.WRITERS, permission)
    elif table is not None and table.get("_account") != job["_account"]:
        text = f"Access Denied: Table {label}: the result of another account's query"
        raise BigQueryError("accessDenied", text)
    how = config.get("writeDisposition") or ("WRITE_EMPTY" if kind == "query" else "WRITE_APPEND")
    version = Version(now(), [file], made["rows"], made["bytes"], made["schema"])
    if table is None:
        expires: Body = {}
        if place["datasetId"].startswith("_"):
            expires = {"expirationTime": str(now() + RESULT_MILLISECONDS)}
            expires["_account"] = job["_account"]
        elif dataset := rows.get(DATASET, project, place["datasetId"]):
            location = dataset["location"]
        else:
            text = f"Not found: Dataset {project}:{place['datasetId']} was not found"
            raise BigQueryError("notFound", text)
        if config.get("createDisposition") == "CREATE_NEVER":
            raise BigQueryError("notFound", f"Not found: Table {label}")
        table = new_table(place, location, {"schema": {"fields": made["schema"]}, **expires})
    elif how == "WRITE_APPEND" and table.get("schema"):
        fields = table["schema"]["fields"]
        before, after = (
            [(f["name"].lower(), f["type"]) for f in s] for s in (fields, made["schema"])
        )
        if before != after:
            raise BigQueryError("invalid", f"Provided Schema does not match Table {label}.")
        if old := version_of(table, None):
            sums = {key: size + made["bytes"][key] for key, size in old.bytes.items()}
            files, count = [*old.files, file], old.rows + version.rows
            version = Version(version.time, files, count, sums, fields)
    elif how == "WRITE_EMPTY" and (old := version_of(table, None)) and old.rows:
        raise BigQueryError("duplicate", f"Already Exists: Table {label}")
    else:
        table["schema"] = {"fields": made["schema"]}
    add_version(table, version)
    rows.put(TABLE, project, name, table)
