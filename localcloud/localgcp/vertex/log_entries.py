"""Cloud Logging's ``ListLogEntries`` over the log files of jobs.

Timestamps are exact to half a second: the runner polls the sizes of logs twice a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final, Protocol

import grpc
from google.api import monitored_resource_pb2
from google.cloud.logging_v2 import types

from localgcp.apis.client import Api
from localgcp.apis.refusals import invalid_argument
from localgcp.clients import log_filters
from localgcp.errors import ApiError, FilterError
from localgcp.home import Home
from localgcp.inventory.store import Store, project_number
from localgcp.vertex.job_logs import read_lines
from localgcp.vertex.records import JobRecord, JobState, JobTable

API: Final = "logging.googleapis.com"
_JOB: Final = "resource.labels.job_id"
#: Task name in log entries of the service itself, not of a replica.
_SERVICE: Final = "service"
#: Label with a trial's id; the entry's resource contains the id of the tuning job.
_TRIAL: Final = "ml.googleapis.com/trial_id"
#: Filter field with which clients request a Batch job's log, and resource type of the log.
_BATCH_JOB, _BATCH = "labels.job_uid", "batch.googleapis.com/Job"
_KNOWN: Final = (
    *("resource.type", _JOB, "resource.labels.task_name"),
    *(_BATCH_JOB, "labels.task_id", "resource.labels.location"),
    *("resource.labels.build_id", "timestamp", "insertId", "severity", "textPayload", "logName"),
)
#: Attributes of an entry, by field of a filter.
_FIELDS: Final = {"insertId": "insert_id", "logName": "log_name", "textPayload": "text_payload"}
_PAGE: Final = 50
_MAX_PAGE: Final = 1000


@dataclass(slots=True)
class _Line:
    """A line of a job's log. Only lines in answers become a ``LogEntry``, which is slow."""

    log_name: str
    resource: monitored_resource_pb2.MonitoredResource
    labels: dict[str, str]
    text_payload: str
    timestamp: datetime
    insert_id: str

    def message(self) -> types.LogEntry:
        return types.LogEntry(
            log_name=self.log_name,
            resource=self.resource,
            labels=self.labels,
            text_payload=self.text_payload,
            timestamp=self.timestamp,
            insert_id=self.insert_id,
            severity="INFO",
        )


_Entry = types.LogEntry | _Line


@dataclass(frozen=True)
class _Query:
    project: str
    equal: dict[str, str]
    test: Callable[[_Entry], bool]


class TuningJobs(Protocol):
    """Reads tuning jobs; see ``localgcp.tuning.service``."""

    def trials(self, tuning_id: str, /) -> Iterable[tuple[str, str]]:
        """Return the trials of a tuning job as pairs of trial id and CustomJob id."""
        ...

    def job(self, tuning_id: str, /) -> JobRecord | None:
        """Return the tuning job with this id, or None."""
        ...


class LogService:
    """``google.logging.v2.LoggingServiceV2``, with the methods that read the log of a job.

    ``others`` maps resource types to functions that yield entries of a project by filter labels.
    """

    api: ClassVar = Api("google.cloud.logging_v2", "logging_service_v2")

    def __init__(
        self,
        home: Home,
        store: Store,
        jobs: JobTable,
        others: Mapping[str, Callable[[str, dict[str, str]], Iterator[types.LogEntry]]]
        | None = None,
        tuning: TuningJobs | None = None,
    ) -> None:
        self.home, self.store, self.jobs, self.others = home, store, jobs, dict(others or {})
        self.tuning = tuning
        #: The latest request with further pages, and its entries: a long log takes seconds to read.
        self._next_pages: tuple[tuple[str, ...], list[_Entry]] = ((), [])

    def matching(
        self, project: str, log_filter: log_filters.LogFilter, job_id: str
    ) -> Iterator[types.LogEntry]:
        """Yield entries of one job, of any type, that match a filter."""
        if log_filter.equal.get(_JOB, job_id) == job_id:
            equal = {**log_filter.equal, _JOB: job_id}
            query = _Query(project, equal, lambda entry: log_filter.test(_fields(entry)))
            yield from map(_message, self._entries(query))

    def list_log_entries(
        self, request: types.ListLogEntriesRequest
    ) -> types.ListLogEntriesResponse:
        """Return entries of one job. Raises ApiError for unsupported requests."""
        query = self._query(request)
        if not 0 <= request.page_size <= _MAX_PAGE:
            raise invalid_argument(f"page_size must be 0 to {_MAX_PAGE}, got {request.page_size}.")
        if not re.fullmatch(r"[0-9]{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token[:80]!r}.")
        if request.order_by not in ("", "timestamp asc", "timestamp desc"):
            raise invalid_argument(f"order_by: {request.order_by!r} is not supported.")
        listing = (query.project, request.filter, request.order_by)
        key, entries = self._next_pages
        begin = int(request.page_token or 0)
        if not begin or key != listing:
            entries = sorted(self._entries(query), key=lambda e: (e.timestamp, e.insert_id))
            if request.order_by == "timestamp desc":
                entries.reverse()
        end = begin + (request.page_size or _PAGE)
        self._next_pages = (listing, entries) if end < len(entries) else ((), [])
        return types.ListLogEntriesResponse(
            entries=[_message(entry) for entry in entries[begin:end]],
            next_page_token=str(end) if end < len(entries) else "",
        )

    def _query(self, request: types.ListLogEntriesRequest) -> _Query:
        match = re.fullmatch(r"projects/([^/]+)", ",".join(request.resource_names))
        if not match:
            text = f"resource_names must be one project, got {request.resource_names}."
            raise invalid_argument(text)
        if not self.store.service_enabled(match[1], API):
            text = f"Cloud Logging API has not been used in project {match[1]} before or it is"
            raise ApiError(grpc.StatusCode.PERMISSION_DENIED, f"{text} disabled.")
        try:
            log_filter = log_filters.parse(request.filter, _KNOWN)
        except FilterError as error:
            raise invalid_argument(str(error)) from error
        if self._other(log_filter.equal) is None and _JOB not in log_filter.equal:
            problem = "the local cloud reads only the log of one job"
            raise invalid_argument(f'Unparseable filter: {problem}, {_JOB}="ID".')
        return _Query(match[1], log_filter.equal, lambda entry: log_filter.test(_fields(entry)))

    def _entries(self, query: _Query) -> Iterator[_Entry]:
        if other := self._other(query.equal):
            yield from filter(query.test, other(query.project, query.equal))
            return
        if query.equal.get("resource.type", "ml_job") != "ml_job":
            return
        id_ = query.equal.get(_JOB, "")
        yield from self._of_job(query, id_, {"job_id": id_}, {})
        for trial, job_id in self.tuning.trials(id_) if self.tuning else ():
            yield from self._of_job(query, job_id, {"job_id": id_}, {_TRIAL: trial})
        if job := self.jobs.get(id_) or (self.tuning.job(id_) if self.tuning else None):
            yield from filter(query.test, self._of_service(query, job))

    def _of_service(self, query: _Query, job: JobRecord) -> Iterator[types.LogEntry]:
        """Yield the service's own entry about a failed job (observed at Google, severity INFO)."""
        is_wanted = query.equal.get("resource.labels.task_name", _SERVICE) == _SERVICE
        of_project = query.project in (job.project, project_number(job.project))
        if is_wanted and of_project and job.state is JobState.FAILED and job.end_time:
            named = {"job_id": job.job_id, "project_id": job.project, "task_name": _SERVICE}
            yield types.LogEntry(
                log_name=f"projects/{job.project}/logs/ml.googleapis.com%2F{job.job_id}",
                resource=monitored_resource_pb2.MonitoredResource(type="ml_job", labels=named),
                text_payload="Job failed.",
                timestamp=datetime.fromisoformat(job.end_time),
                insert_id=f"{job.job_id}-{_SERVICE}-000000000",
                severity="INFO",
            )

    def _other(
        self, equal: Mapping[str, str]
    ) -> Callable[[str, dict[str, str]], Iterator[types.LogEntry]] | None:
        kind = _BATCH if _BATCH_JOB in equal else ""
        return self.others.get(equal.get("resource.type", kind))

    def _of_job(
        self, query: _Query, job_id: str, resource: dict[str, str], labels: dict[str, str]
    ) -> Iterator[_Line]:
        job = self.jobs.get(job_id)
        if job is None or query.project not in (job.project, project_number(job.project)):
            return
        wanted = query.equal.get("resource.labels.task_name")
        for file in sorted((self.home.jobs / job.job_id / "logs").glob("*.log")):
            if wanted in (None, file.stem):
                named = {**resource, "project_id": job.project, "task_name": file.stem}
                made = monitored_resource_pb2.MonitoredResource(type="ml_job", labels=named)
                yield from filter(query.test, _of_replica(job, file, made, labels))


def _message(entry: _Entry) -> types.LogEntry:
    return entry.message() if isinstance(entry, _Line) else entry


def _fields(entry: _Entry) -> Callable[[str], str]:
    def read(name: str) -> str:
        if name.startswith("labels."):
            return entry.labels.get(name.removeprefix("labels."), "")
        if name.startswith("resource.labels."):
            return entry.resource.labels.get(name.removeprefix("resource.labels."), "")
        if name == "timestamp":
            return entry.timestamp.isoformat()  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        if name == "resource.type":
            return entry.resource.type
        return getattr(entry, _FIELDS[name]) if name in _FIELDS else "INFO"

    return read


def _of_replica(
    job: JobRecord,
    file: Path,
    resource: monitored_resource_pb2.MonitoredResource,
    labels: dict[str, str],
) -> Iterator[_Line]:
    created, ended = datetime.fromisoformat(job.create_time), job.state.terminal
    name, id_ = f"projects/{job.project}/logs/{file.stem}", f"{job.job_id}-{file.stem}"
    for number, text, time in read_lines(file, created, ended=ended):
        yield _Line(name, resource, labels, text, time, f"{id_}-{number:09}")
