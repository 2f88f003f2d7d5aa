"""One request, one query, one export, one manifest: whatever dies in between. Pure.

=========  =====================================================  ================================
step       what is done                                           if the process dies right after
=========  =====================================================  ================================
query      a job of an id that follows from the request           the next run gets it by its id
export     another one, of the query's result, into a new folder  as above
fence      the digest of the manifest, in the control bucket      as above
manifest   what both made, written if there is none               it has that digest: recorded
record     the manifest's generation, in the control bucket       nothing is asked any more
=========  =====================================================  ================================

BigQuery refuses an id that it has (409), so no lease is needed. A job that failed made nothing: the
next run sends the next attempt. Whoever can write to the bucket can write a manifest; only one of
the digest that the control bucket has is recorded, and only the recorded generation counts then.
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

#: Attempts of one stage that are looked at.
MOST_ATTEMPTS: Final = 50
#: Seconds between two looks at a job that runs.
POLL: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
#: Types of parameters by those of the values.
TYPES: Final = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING"}
_FORMATS: Final = {
    "parquet": {"destinationFormat": "PARQUET", "compression": "SNAPPY"},
    "csv": {"destinationFormat": "CSV"},
}
#: What gives the same text another meaning; none of our queries has it.
_MEANS_ANOTHER: Final = (
    "defaultDataset",
    "tableDefinitions",
    "userDefinedFunctionResources",
    "useLegacySql",
)
Document = Mapping[str, Any]


class Warehouse(Protocol):
    """The calls of BigQuery, in the project and location of a request."""

    def job(self, job_id: str) -> Document | None:
        """The job, or None if there is none."""
        ...

    def insert(self, job_id: str, configuration: Document) -> Document | None:
        """Send a job; None if the id is taken.

        Raises:
            PermissionDeniedError: a right is missing.
            NotSubmittedError: BigQuery refused it.
        """
        ...

    def dry_run(self, configuration: Document) -> Document:
        """Return the bytes that a query would read. Raises as :meth:`insert`."""
        ...

    def table(self, reference: Document) -> Document | None:
        """The table; None if it is not there, or the account may not read it.

        Raises:
            OperatorError: BigQuery does not say which.
        """
        ...


class Files(Protocol):
    """The folder of one snapshot."""

    def objects(self, folder: str) -> list[StoredObject]:
        """Objects in a folder of it."""
        ...

    def read(self, name: str) -> tuple[bytes, int] | None:
        """An object's content and generation, or None."""
        ...

    def create(self, name: str, content: bytes) -> None:
        """Write an object if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SnapshotPorts:
    """Services that a request uses."""

    warehouse: Warehouse
    files: Files
    records: IntentStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that is there."""

    manifest: Document
    generation: int


def query_configuration(request: SnapshotRequest) -> dict[str, Any]:
    """The query's job. Its result is in a table of the service's own that expires after a day."""
    return {
        "query": {
            "query": request.sql,
            "useLegacySql": False,
            "useQueryCache": False,  # its statistics would be those of another job
            "maximumBytesBilled": str(request.max_bytes_billed),
            "parameterMode": "NAMED",
            "queryParameters": _parameters(request),
        }
    }


def _parameters(request: SnapshotRequest) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "parameterType": {"type": _type(request, name, value)},
            "parameterValue": {
                "value": str(value).lower() if isinstance(value, bool) else str(value)
            },
        }
        for name, value in sorted(request.all_parameters.items())
    ]


def _type(request: SnapshotRequest, name: str, value: object) -> str:
    return TYPES[type(value)] if name in request.parameters else "TIMESTAMP"


def find(request: SnapshotRequest, ports: SnapshotPorts) -> Snapshot | None:
    """The snapshot that is recorded for the request; None if there is no record.

    Raises:
        JobRefusedError: its manifest is gone, or another one.
    """
    stored = ports.records.read(request.request_id)
    return _recorded(request, ports, stored.record) if stored else None


def _recorded(
    request: SnapshotRequest, ports: SnapshotPorts, record: IntentRecord
) -> Snapshot | None:
    if record.state != IntentState.DONE:
        return None
    found = ports.files.read(MANIFEST)
    if found is None or manifests.record_of(request, found[1]) != record.job_name:
        how = "was deleted" if found is None else "was written anew by somebody else"
        raise JobRefusedError(
            f"snapshot '{request.name}': {request.uri}/{MANIFEST} {how}. Hint: run: "
            f"{request.run + 1} makes another; or restore {record.job_name}"
        )
    return Snapshot(_parsed(request, found[0]), found[1])


def take_snapshot(
    request: SnapshotRequest,
    ports: SnapshotPorts,
    timing: Timing = Timing(),
    environment: ProcessEnvironment = ProcessEnvironment(),
) -> Snapshot:
    """The snapshot of the request, made if it is not there.

    Raises:
        OperatorError: it could not be made, or somebody else's is in its place.
    """
    stored = ports.records.read(request.request_id)
    if stored and (found := _recorded(request, ports, stored.record)):
        return found
    if stored and (there := _there(request, ports, stored.record.job_name)):
        return _record(request, there, ports, stored.generation)
    stages = _Stages(request, ports, timing, environment)
    query, attempt, result = stages.query()
    objects = stages.export(query, attempt)
    references = query["statistics"].get("query", {}).get("referencedTables", [])
    sources = [
        manifests.source_of(reference, _source(reference, ports)) for reference in references
    ]
    made = manifests.build(request, query, result, sources, objects)
    digest = manifests.export_digest(made)
    generation = _write(
        request, ports, IntentState.SENDING, digest, stored.generation if stored else 0
    )
    ports.files.create(MANIFEST, manifests.canonical(made).encode())
    if (there := _there(request, ports, digest)) is None:
        raise _foreign(request)
    return _record(request, there, ports, generation)


def _source(reference: Document, ports: SnapshotPorts) -> Document | None:
    """A source's table; None if only a query may read it, as through a view."""
    try:
        return ports.warehouse.table(reference)
    except PermissionDeniedError:
        return None


def _there(request: SnapshotRequest, ports: SnapshotPorts, digest: str) -> Snapshot | None:
    """The manifest that is there if it is the one that was to be written."""
    if (found := ports.files.read(MANIFEST)) is None:
        return None
    manifest = _parsed(request, found[0])
    return Snapshot(manifest, found[1]) if manifests.export_digest(manifest) == digest else None


def _record(
    request: SnapshotRequest, snapshot: Snapshot, ports: SnapshotPorts, generation: int
) -> Snapshot:
    name = manifests.record_of(request, snapshot.generation)
    _write(request, ports, IntentState.DONE, name, generation)
    return snapshot


def _write(
    request: SnapshotRequest, ports: SnapshotPorts, state: IntentState, name: str, generation: int
) -> int:
    """Write the record; another process may have written the same.

    Raises:
        OperatorError: it wrote something else.
    """
    record = IntentRecord(request.request_id, state, uuid.uuid4().hex, name)
    try:
        return ports.records.write(record, generation).generation
    except PreconditionFailedError:
        stored = ports.records.read(request.request_id)
        if stored and (stored.record.state, stored.record.job_name) == (state, name):
            return stored.generation
        raise OperatorError(
            f"snapshot '{request.name}': another process makes it. Begin again when it has ended."
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
        f"snapshot '{request.name}': somebody else wrote {request.uri}/{MANIFEST}, and it is not "
        f"of this request's query and export. Hint: find out who; then run: {request.run + 1}"
    )


@dataclass(frozen=True, slots=True)
class _Stages:
    """The two jobs of a request."""

    request: SnapshotRequest
    ports: SnapshotPorts
    timing: Timing
    environment: ProcessEnvironment

    def query(self) -> tuple[Document, int, Document]:
        """The query's job, the number of its attempt, and the table with its result."""
        wanted = query_configuration(self.request)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            job, is_new = self._job(f"query-{attempt}", wanted, self.is_own_query)
            table = job and self.ports.warehouse.table(_result_of(job))
            if job and table:
                return job, attempt, table
            if is_new:  # no run pays twice, whatever the reason is
                raise OperatorError(
                    f"snapshot '{self.request.name}': the query ran; its result cannot be read "
                    "now. Begin again."
                )
        raise self._no_more("queries")

    def export(self, query: Document, of_attempt: int) -> list[StoredObject]:
        """The objects of the query's result."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            folder = f"export-{of_attempt}-{attempt}/"
            wanted = {
                "extract": {
                    "sourceTable": _result_of(query),
                    "destinationUris": [f"{self.request.uri}/{folder}part-*.{self.request.format}"],
                    **_FORMATS[self.request.format],
                }
            }
            own = wanted["extract"]
            job, is_new = self._job(
                f"export-{of_attempt}-{attempt}",
                wanted,
                lambda there, own=own: all(
                    there.get("extract", {}).get(key) == own[key]
                    for key in ("sourceTable", "destinationUris")
                ),
            )
            if job is None:
                continue
            objects = self.ports.files.objects(folder)
            counts = job["statistics"].get("extract", {}).get("destinationUriFileCounts", [])
            if counts and not objects and not is_new:
                continue  # deleted since; another export of the result is free
            if (count := sum(map(int, counts))) != len(objects):
                raise JobRefusedError(
                    f"snapshot '{self.request.name}': the export wrote {count} objects, and "
                    f"{self.request.uri}/{folder} has {len(objects)}. Somebody else wrote there. "
                    f"Hint: find out who; then run: {self.request.run + 1}"
                )
            return objects
        raise self._no_more("exports")

    def is_own_query(self, there: Document) -> bool:
        """Return whether a job of our id has our query, and its result is in our own place."""
        query, own = there.get("query", {}), query_configuration(self.request)["query"]
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
        """The ended job of this attempt, sent if there is none; None if it has failed before.

        And whether it ended only now.

        Raises:
            OperatorError: it failed now, cannot be sent, or is somebody else's.
        """
        job_id = f"vt-snapshot-{self.request.request_id}-{stage}"
        job = self.ports.warehouse.job(job_id)
        seen_ended = job is not None and _has_ended(job)
        if job is None:
            job = self._send(job_id, configuration)
        if not is_own(job["configuration"]):
            raise JobRefusedError(
                f"snapshot '{self.request.name}': the BigQuery job {job_id} is somebody else's. "
                f"Hint: find out whose; then run: {self.request.run + 1}"
            )
        job = self._wait(job_id, job)
        if (error := job["status"].get("errorResult")) is None:
            return job, not seen_ended
        if seen_ended:
            return None, False
        reason, message = error.get("reason", ""), error.get("message", "")
        raise NotSubmittedError(
            f"snapshot '{self.request.name}': BigQuery refused the {stage.partition('-')[0]} "
            f"({reason}): {message}{_hint(reason)}"
        )

    def _send(self, job_id: str, configuration: Document) -> Document:
        started = self.environment.monotonic()
        while True:
            if not self.environment.engine_is_alive():
                raise OperatorError("the engine has gone; the next `pulumi up` goes on.")
            try:
                sent = self.ports.warehouse.insert(job_id, configuration)
            except PermissionDeniedError:
                # The stack may have granted it a moment ago.
                if self.environment.monotonic() - started > self.timing.gate:
                    raise
                self.environment.sleep(self.timing.interval)
                continue
            if (job := sent or self.ports.warehouse.job(job_id)) is None:
                raise OperatorError(f"BigQuery has a job {job_id}, and does not return it.")
            return job

    def _wait(self, job_id: str, job: Document) -> Document:
        looks = 0
        while not _has_ended(job):
            if not self.environment.engine_is_alive():
                raise OperatorError(f"{job_id} runs on; the next `pulumi up` takes it over.")
            self.environment.sleep(POLL[min(looks, len(POLL) - 1)])
            looks += 1
            job = self.ports.warehouse.job(job_id) or job
        return job

    def _no_more(self, what: str) -> OperatorError:
        return OperatorError(
            f"snapshot '{self.request.name}': {MOST_ATTEMPTS} {what} failed. "
            f"Hint: run: {self.request.run + 1} begins anew."
        )


def has_run(request: SnapshotRequest, ports: SnapshotPorts) -> bool:
    """Return whether an earlier `up` ran its query and the result exists: an export remains."""
    stages = _Stages(request, ports, Timing(), ProcessEnvironment())
    try:
        job = ports.warehouse.job(f"vt-snapshot-{request.request_id}-query-1")
    except PermissionDeniedError:
        return False  # somebody else's
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


def _hint(reason: str) -> str:
    if reason == "bytesBilledLimitExceeded":
        return " Hint: nothing was charged; raise maxBytesBilled, or read less."
    return ""
