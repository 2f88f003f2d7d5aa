"""Runs a snapshot's query and export once, even if processes die. Pure.

=========  =====================================================  ================================
step       action                                                 if the process dies right after
=========  =====================================================  ================================
query      run a job with an id from the request                  the next run reads it by its id
export     run a job that exports the result to a new folder      the next run reads it by its id
fence      write the manifest's digest to the control bucket      the next run writes it again
manifest   write the manifest, unless it exists                   the next run compares the digest
record     write its generation to the control bucket             the snapshot is complete
=========  =====================================================  ================================

BigQuery refuses an existing id (409), so no lease is needed. A failed job has no result: the next
run sends the next attempt. All writers of the bucket can write a manifest, but only a manifest with
the digest in the control bucket is recorded. Then only the recorded generation is valid.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from vertex_training.customjob.protocol.ports import (
    IntentRecord,
    IntentState,
    IntentStore,
    ProcessEnvironment,
    Timing,
)
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.manifest import StoredObject
from vertex_training.snapshots.request import MANIFEST, SnapshotRequest, canonical_query

#: Maximum number of jobs for the query, and for the export.
MOST_ATTEMPTS: Final = 50
#: Seconds between two requests for the state of a running job.
POLL: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
#: BigQuery's type of a query parameter by the Python type of its value.
TYPES: Final = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING"}
_FORMATS: Final = {
    "parquet": {"destinationFormat": "PARQUET", "compression": "SNAPPY"},
    "csv": {"destinationFormat": "CSV"},
}
#: Options that change the meaning of a query. This program's queries do not set these options.
_MEANS_ANOTHER: Final = (
    "defaultDataset",
    "tableDefinitions",
    "userDefinedFunctionResources",
    "useLegacySql",
)
Document = Mapping[str, Any]


class Warehouse(Protocol):
    """Calls of BigQuery in the project and location of a request."""

    def job(self, job_id: str) -> Document | None:
        """Return the job; None if the job does not exist."""
        ...

    def insert(self, job_id: str, configuration: Document) -> Document | None:
        """Create a job; return None if the id exists. Raises NotSubmittedError or OperatorError."""
        ...

    def dry_run(self, configuration: Document) -> Document:
        """Return the response to a dry run of a query. Raises like :meth:`insert`."""
        ...

    def table(self, reference: Document) -> Document | None:
        """Return the table; None if the table is missing or unreadable."""
        ...


class Files(Protocol):
    """Access to the folder of a snapshot."""

    def objects(self, folder: str) -> list[StoredObject]:
        """Return the objects in a subfolder."""
        ...

    def read(self, name: str) -> tuple[bytes, int] | None:
        """Return an object's content and generation; None if the object does not exist."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Write an object unless it exists."""
        ...


@dataclass(frozen=True, slots=True)
class SnapshotPorts:
    """The services that a snapshot uses."""

    warehouse: Warehouse
    files: Files
    records: IntentStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A complete snapshot: its manifest, and the manifest's generation."""

    manifest: Document
    generation: int


def query_configuration(request: SnapshotRequest) -> dict[str, Any]:
    """Return the job configuration of the query. BigQuery stores the query's result for a day."""
    return {
        "query": {
            "query": request.sql,
            "useLegacySql": False,
            "useQueryCache": False,  # a cached result has the statistics of another job
            "maximumBytesBilled": str(request.max_bytes_billed),
            "parameterMode": "NAMED",
            "queryParameters": [
                {
                    "name": name,
                    "parameterType": {
                        "type": TYPES[type(value)] if name in request.parameters else "TIMESTAMP"
                    },
                    "parameterValue": {
                        "value": str(value).lower() if isinstance(value, bool) else str(value)
                    },
                }
                for name, value in sorted(request.all_parameters.items())
            ],
        }
    }


def find(request: SnapshotRequest, ports: SnapshotPorts) -> Snapshot | None:
    """Return the recorded snapshot; None without a record. Raises JobRefusedError if it changed."""
    stored = ports.records.read(request.request_id)
    return _recorded(request, ports, stored.record) if stored else None


def _recorded(
    request: SnapshotRequest, ports: SnapshotPorts, record: IntentRecord
) -> Snapshot | None:
    if record.state != IntentState.DONE:
        return None
    manifest = ports.files.read(MANIFEST)
    if manifest is None or manifests.record_of(request, manifest[1]) != record.job_name:
        how = "was deleted" if manifest is None else "was overwritten by another user"
        raise JobRefusedError(
            f"snapshot '{request.name}': {request.uri}/{MANIFEST} {how}. Hint: set `run: "
            f"{request.run + 1}` on the snapshot to create a new snapshot, or restore "
            f"{record.job_name}"
        )
    return Snapshot(_parsed(request, manifest[0]), manifest[1])


def take_snapshot(
    request: SnapshotRequest,
    ports: SnapshotPorts,
    timing: Timing = Timing(),
    environment: ProcessEnvironment = ProcessEnvironment(),
) -> Snapshot:
    """Return the snapshot, and create it if it does not exist. Raises OperatorError."""
    stored = ports.records.read(request.request_id)
    if stored and (snapshot := _recorded(request, ports, stored.record)):
        return snapshot
    if stored and (snapshot := _written(request, ports, stored.record.job_name)):
        return _record(request, snapshot, ports, stored.generation)
    stages = _Stages(request, ports, timing, environment)
    query, attempt, result = stages.query()
    objects = stages.export(query, attempt)
    references = query["statistics"].get("query", {}).get("referencedTables", [])
    sources = [
        manifests.source_of(reference, _source(reference, ports)) for reference in references
    ]
    manifest = manifests.build(request, query, result, sources, objects)
    digest = manifests.export_digest(manifest)
    generation = _write(
        request, ports, IntentState.SENDING, digest, stored.generation if stored else 0
    )
    ports.files.create(MANIFEST, manifests.canonical(manifest).encode())
    if (snapshot := _written(request, ports, digest)) is None:
        raise _foreign(request)
    return _record(request, snapshot, ports, generation)


def _source(reference: Document, ports: SnapshotPorts) -> Document | None:
    try:
        return ports.warehouse.table(reference)
    except PermissionDeniedError:  # a table that can only be queried, such as one behind a view
        return None


def _written(request: SnapshotRequest, ports: SnapshotPorts, digest: str) -> Snapshot | None:
    if (stored := ports.files.read(MANIFEST)) is None:
        return None
    manifest = _parsed(request, stored[0])
    return Snapshot(manifest, stored[1]) if manifests.export_digest(manifest) == digest else None


def _record(
    request: SnapshotRequest, snapshot: Snapshot, ports: SnapshotPorts, generation: int
) -> Snapshot:
    name = manifests.record_of(request, snapshot.generation)
    _write(request, ports, IntentState.DONE, name, generation)
    return snapshot


def _write(
    request: SnapshotRequest, ports: SnapshotPorts, state: IntentState, name: str, generation: int
) -> int:
    """Write the record, unless another process wrote an equal record. Raises OperatorError."""
    record = IntentRecord(request.request_id, state, uuid.uuid4().hex, name)
    try:
        return ports.records.write(record, generation).generation
    except PreconditionFailedError:
        stored = ports.records.read(request.request_id)
        if stored and (stored.record.state, stored.record.job_name) == (state, name):
            return stored.generation
        raise OperatorError(
            f"snapshot '{request.name}': another process is creating this snapshot. Run the "
            "command again after that process has ended."
        ) from None


def _parsed(request: SnapshotRequest, text: bytes) -> Document:
    try:
        result = manifests.parse(text)
    except ValueError:
        raise _foreign(request) from None
    if result["snapshot"] != manifests.identity(request):
        raise _foreign(request)
    return result


def _foreign(request: SnapshotRequest) -> JobRefusedError:
    return JobRefusedError(
        f"snapshot '{request.name}': {request.uri}/{MANIFEST} does not match this query and "
        "export, because another user wrote the object. Hint: find the writer in the audit logs, "
        f"then set `run: {request.run + 1}` on the snapshot"
    )


@dataclass(frozen=True, slots=True)
class _Stages:
    """The query and export jobs of a request."""

    request: SnapshotRequest
    ports: SnapshotPorts
    timing: Timing
    environment: ProcessEnvironment

    def query(self) -> tuple[Document, int, Document]:
        """Run the query; return its job, the attempt's number, and the table with the result."""
        configuration = query_configuration(self.request)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            job, is_new = self._job(f"query-{attempt}", configuration, self.is_own_query)
            table = job and self.ports.warehouse.table(_result_of(job))
            if job and table:
                return job, attempt, table
            if is_new:  # a run never pays twice
                raise OperatorError(
                    f"snapshot '{self.request.name}': the query ran, but its result could not be "
                    "read. Run the command again."
                )
        raise self._no_more("queries")

    def export(self, query: Document, of_attempt: int) -> list[StoredObject]:
        """Export the query's result, and return the exported objects."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            folder = f"export-{of_attempt}-{attempt}/"
            configuration = {
                "extract": {
                    "sourceTable": _result_of(query),
                    "destinationUris": [f"{self.request.uri}/{folder}part-*.{self.request.format}"],
                    **_FORMATS[self.request.format],
                }
            }
            own = configuration["extract"]
            job, is_new = self._job(
                f"export-{of_attempt}-{attempt}",
                configuration,
                lambda current, own=own: all(
                    current.get("extract", {}).get(key) == own[key]
                    for key in ("sourceTable", "destinationUris")
                ),
            )
            if job is None:
                continue
            objects = self.ports.files.objects(folder)
            counts = job["statistics"].get("extract", {}).get("destinationUriFileCounts", [])
            if counts and not objects and not is_new:
                continue  # the objects were deleted; another export of the result is free
            if (count := sum(map(int, counts))) != len(objects):
                raise JobRefusedError(
                    f"snapshot '{self.request.name}': the export wrote {count} objects, but "
                    f"{self.request.uri}/{folder} has {len(objects)} objects, because another user "
                    "changed the folder. Hint: find the writer in the audit logs, then set `run: "
                    f"{self.request.run + 1}` on the snapshot"
                )
            return objects
        raise self._no_more("exports")

    def is_own_query(self, current: Document) -> bool:
        """Return True if a job has this request's query and a temporary result table."""
        query, own = current.get("query", {}), query_configuration(self.request)["query"]
        sql = canonical_query(str(query.get("query", "")))
        return (
            sql == canonical_query(own["query"])
            and _by_name(query.get("queryParameters", [])) == _by_name(own["queryParameters"])
            and not any(query.get(key) for key in _MEANS_ANOTHER)
            and str(query.get("destinationTable", {}).get("datasetId", "_")).startswith("_")
        )

    def _job(
        self, stage: str, configuration: Document, is_own: Callable[[Document], bool]
    ) -> tuple[Document | None, bool]:
        """Run a job; return the job, or None if it failed earlier, and True if the job is new."""
        job_id = f"vt-snapshot-{self.request.request_id}-{stage}"
        job = self.ports.warehouse.job(job_id)
        seen_ended = job is not None and _has_ended(job)
        if job is None:
            job = self._send(job_id, configuration)
        if not is_own(job["configuration"]):
            raise JobRefusedError(
                f"snapshot '{self.request.name}': another user created the BigQuery job {job_id}. "
                "Hint: find that user in the job's details, then set `run: "
                f"{self.request.run + 1}` on the snapshot"
            )
        job = self._wait(job_id, job)
        if (error := job["status"].get("errorResult")) is None:
            return job, not seen_ended
        if seen_ended:
            return None, False
        reason, message, hint = error.get("reason", ""), error.get("message", ""), ""
        if reason == "bytesBilledLimitExceeded":
            hint = " Hint: the query had no cost; raise maxBytesBilled, or read fewer bytes."
        raise NotSubmittedError(
            f"snapshot '{self.request.name}': BigQuery refused the {stage.partition('-')[0]} "
            f"({reason}): {message}{hint}"
        )

    def _send(self, job_id: str, configuration: Document) -> Document:
        started = self.environment.monotonic()
        while True:
            if not self.environment.engine_is_alive():
                raise OperatorError("the Pulumi engine has exited. Run `pulumi up` to continue.")
            try:
                sent = self.ports.warehouse.insert(job_id, configuration)
            except PermissionDeniedError:
                # The stack may have granted the permission a moment ago.
                if self.environment.monotonic() - started > self.timing.gate:
                    raise
                self.environment.sleep(self.timing.interval)
                continue
            if (job := sent or self.ports.warehouse.job(job_id)) is None:
                raise OperatorError(
                    f"BigQuery reports that the job {job_id} exists, but does not return the job. "
                    "Run the command again."
                )
            return job

    def _wait(self, job_id: str, job: Document) -> Document:
        looks = 0
        while not _has_ended(job):
            if not self.environment.engine_is_alive():
                raise OperatorError(
                    f"the Pulumi engine has exited, and the BigQuery job {job_id} is still "
                    "running. Run `pulumi up` to continue with that job."
                )
            self.environment.sleep(POLL[min(looks, len(POLL) - 1)])
            looks += 1
            job = self.ports.warehouse.job(job_id) or job
        return job

    def _no_more(self, what: str) -> OperatorError:
        return OperatorError(
            f"snapshot '{self.request.name}': {MOST_ATTEMPTS} {what} failed. Hint: set `run: "
            f"{self.request.run + 1}` on the snapshot to start again."
        )


def has_run(request: SnapshotRequest, ports: SnapshotPorts) -> bool:
    """Return True if an earlier `up` ran the query and the result still exists."""
    stages = _Stages(request, ports, Timing(), ProcessEnvironment())
    try:
        job = ports.warehouse.job(f"vt-snapshot-{request.request_id}-query-1")
    except PermissionDeniedError:
        return False  # a job of another user
    return (
        job is not None
        and _has_ended(job)
        and "errorResult" not in job["status"]
        and stages.is_own_query(job["configuration"])
        and ports.warehouse.table(_result_of(job)) is not None
    )


def _by_name(parameters: Sequence[Document]) -> dict[str, tuple[Any, Any]]:
    return {
        parameter["name"]: (
            parameter.get("parameterType", {}).get("type"),
            parameter.get("parameterValue"),
        )
        for parameter in parameters
    }


def _result_of(query: Document) -> Document:
    return query["configuration"]["query"]["destinationTable"]


def _has_ended(job: Document) -> bool:
    return job["status"]["state"] == "DONE"
