"""Cloud Logging's ``ListLogEntries`` over the log files of jobs.

Timestamps are exact to half a second: the runner polls the sizes of logs twice a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Final, Protocol

import grpc
from google.cloud.logging_v2 import types

from localgcp.apis.client import Api
from localgcp.apis.server import invalid_argument
from localgcp.clients import log_filters
from localgcp.clients.log_filters import LogFilter
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
#: Attributes of a line, by field of a filter.
_FIELDS: Final = {
    "insertId": "insert_id",
    "logName": "log_name",
    "textPayload": "text_payload",
    "resource.type": "resource_type",
}
_PAGE: Final = 50
_MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. Only lines in answers become a ``LogEntry``, which is slow."""

    log_name: str
    resource_type: str
    resource_labels: Mapping[str, str]
    timestamp: datetime
    insert_id: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    text_payload: str = ""

    def value(self, name: str) -> str:
        """Return the value of a filter's field."""
        if name.startswith("labels."):
            return self.labels.get(name.removeprefix("labels."), "")
        if name.startswith("resource.labels."):
            return self.resource_labels.get(name.removeprefix("resource.labels."), "")
        if name == "timestamp":
            return self.timestamp.isoformat()
        return getattr(self, _FIELDS[name]) if name in _FIELDS else "INFO"

    def message(self) -> types.LogEntry:
        return types.LogEntry(
            log_name=self.log_name,
            resource={"type": self.resource_type, "labels": self.resource_labels},
            labels=self.labels,
            text_payload=self.text_payload,
            timestamp=self.timestamp,
            insert_id=self.insert_id,
            severity="INFO",
        )


def lines_of(log: Path, first: LogLine, *, ended: bool) -> Iterator[LogLine]:
    """Yield the lines of a log file.

    ``first`` has the fields of all lines, the time of the job's creation, and the common part of
    the ids.
    """
    for number, text, time in read_lines(log, first.timestamp, ended=ended):
        id_ = f"{first.insert_id}-{number:09}"
        yield replace(first, text_payload=text, timestamp=time, insert_id=id_)


#: Function that yields the log lines of a project that have some values in a filter's fields.
Lines = Callable[[str, Mapping[str, str]], Iterator[LogLine]]


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

    ``others`` maps resource types of other logs to their lines.
    """

    api: ClassVar = Api("google.cloud.logging_v2", "logging_service_v2")

    def __init__(
        self,
        home: Home,
        store: Store,
        jobs: JobTable,
        others: Mapping[str, Lines] | None = None,
        tuning: TuningJobs | None = None,
    ) -> None:
        self.home, self.store, self.jobs, self.others = home, store, jobs, dict(others or {})
        self.tuning = tuning
        #: The latest request with further pages, and its entries: a long log takes seconds to read.
        self._next_pages: tuple[tuple[str, ...], list[LogLine]] = ((), [])

    def matching(self, project: str, log_filter: LogFilter, job_id: str) -> Iterator[LogLine]:
        """Yield lines of one job, of any type, that match a filter."""
        if log_filter.equal.get(_JOB, job_id) == job_id:
            equal = {**log_filter.equal, _JOB: job_id}
            yield from self._lines(project, replace(log_filter, equal=equal))

    def list_log_entries(
        self, request: types.ListLogEntriesRequest
    ) -> types.ListLogEntriesResponse:
        """Return entries of one job. Raises ApiError for unsupported requests."""
        project, log_filter = self._query(request)
        if not 0 <= request.page_size <= _MAX_PAGE:
            raise invalid_argument(f"page_size must be 0 to {_MAX_PAGE}, got {request.page_size}.")
        if not re.fullmatch(r"[0-9]{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token[:80]!r}.")
        if request.order_by not in ("", "timestamp asc", "timestamp desc"):
            raise invalid_argument(f"order_by: {request.order_by!r} is not supported.")
        listing = (project, request.filter, request.order_by)
        key, entries = self._next_pages
        begin = int(request.page_token or 0)
        if not begin or key != listing:
            lines = self._lines(project, log_filter)
            entries = sorted(lines, key=attrgetter("timestamp", "insert_id"))
            if request.order_by == "timestamp desc":
                entries.reverse()
        end = begin + (request.page_size or _PAGE)
        self._next_pages = (listing, entries) if end < len(entries) else ((), [])
        return types.ListLogEntriesResponse(
            entries=[line.message() for line in entries[begin:end]],
            next_page_token=str(end) if end < len(entries) else "",
        )

    def _query(self, request: types.ListLogEntriesRequest) -> tuple[str, LogFilter]:
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
        return match[1], log_filter

    def _lines(self, project: str, log_filter: LogFilter) -> Iterator[LogLine]:
        equal = log_filter.equal
        lines = self._other(equal) or self._of_job
        yield from (line for line in lines(project, equal) if log_filter.test(line.value))

    def _other(self, equal: Mapping[str, str]) -> Lines | None:
        kind = _BATCH if _BATCH_JOB in equal else ""
        return self.others.get(equal.get("resource.type", kind))

    def _of_job(self, project: str, equal: Mapping[str, str]) -> Iterator[LogLine]:
        """Yield the lines of a job's replicas, of a tuning job's trials, and of the service."""
        if equal.get("resource.type", "ml_job") != "ml_job":
            return
        id_, task = equal.get(_JOB, ""), equal.get("resource.labels.task_name")
        trials = self.tuning.trials(id_) if self.tuning else ()
        runs = [(id_, {}), *((job_id, {_TRIAL: trial}) for trial, job_id in trials)]
        for job_id, labels in runs:
            job = self.jobs.get(job_id)
            if job is None or project not in (job.project, project_number(job.project)):
                continue
            for file in sorted((self.home.jobs / job_id / "logs").glob("*.log")):
                if task in (None, file.stem):
                    yield from _of_replica(job, file, id_, labels)
        job = self.jobs.get(id_) or (self.tuning.job(id_) if self.tuning else None)
        if (
            job
            and task in (None, _SERVICE)
            and project in (job.project, project_number(job.project))
        ):
            yield from _of_service(job)


def _of_service(job: JobRecord) -> Iterator[LogLine]:
    """Yield the service's own entry about a failed job (observed at Google, severity INFO)."""
    if job.state is JobState.FAILED and job.end_time:
        yield LogLine(
            f"projects/{job.project}/logs/ml.googleapis.com%2F{job.job_id}",
            "ml_job",
            {"job_id": job.job_id, "project_id": job.project, "task_name": _SERVICE},
            datetime.fromisoformat(job.end_time),
            f"{job.job_id}-{_SERVICE}-000000000",
            text_payload="Job failed.",
        )


def _of_replica(job: JobRecord, file: Path, id_: str, labels: dict[str, str]) -> Iterator[LogLine]:
    first = LogLine(
        f"projects/{job.project}/logs/{file.stem}",
        "ml_job",
        {"job_id": id_, "project_id": job.project, "task_name": file.stem},
        datetime.fromisoformat(job.create_time),
        f"{job.job_id}-{file.stem}",
        labels,
    )
    yield from lines_of(file, first, ended=job.state.terminal)
