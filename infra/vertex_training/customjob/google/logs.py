"""Log lines of a job's replicas, or of an image's build, from Cloud Logging or the local cloud.

Vertex AI writes entries of resource type ``ml_job`` with the labels ``job_id`` and ``task_name``.
Entries of Batch have the labels ``job_uid`` and ``task_id``; its agent's entries no ``task_id``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError

from vertex_training.customjob.google.job_service import read, service_client
from vertex_training.errors import OperatorError

if TYPE_CHECKING:
    from google.cloud.logging_v2 import types
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

PAGE: Final = 1000
#: Prefix of ids of builds, in place of the number of a job.
BUILD: Final = "builds/"
#: Name of the only task group of a Batch job.
_GROUP: Final = "group0"
_TASK: Final = re.compile(rf"task/.+-{_GROUP}-([0-9]+)/")
#: Time before the last entry from which ``follow`` reads again, since entries arrive out of order.
OVERLAP: Final = timedelta(seconds=10)
#: Number of consecutive failed polls after which ``follow`` ends.
MAX_FAILURES: Final = 5


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. ``time`` is RFC 3339."""

    time: str
    replica: str
    severity: str
    text: str


def connect(project: str, account: str = "") -> JobLogs:
    """Return the logs of a project's jobs. Raises OperatorError."""
    return JobLogs(client(project, account), project)


def client(project: str, account: str = "") -> LoggingServiceV2Client:
    """Return the official client; see ``job_service.service_client``."""
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import (
        LoggingServiceV2GrpcTransport,
    )

    types = (LoggingServiceV2Client, LoggingServiceV2GrpcTransport)
    return service_client(*types, project, account=account, endpoint="logging.googleapis.com")


class JobLogs:
    """Reader of a project's log entries. All methods raise OperatorError for a refused read."""

    def __init__(self, client: LoggingServiceV2Client, project: str) -> None:
        self._client, self._project = client, project

    def lines(self, job_id: str, replica: str | None = None) -> Iterator[LogLine]:
        """Yield all lines of one or all replicas, oldest first."""
        for entry in self._entries(_filter(job_id, replica), "timestamp asc"):
            yield from _lines(entry)

    def tail(self, job_id: str, count: int, replica: str | None = None) -> list[LogLine]:
        """Return the last ``count`` lines, oldest first."""
        newest = self._entries(_filter(job_id, replica), "timestamp desc", min(count, PAGE))
        lines = [line for entry in islice(newest, count) for line in reversed(_lines(entry))]
        return lines[:count][::-1]

    def follow(
        self,
        job_id: str,
        replica: str | None,
        *,
        ended: Callable[[], bool],
        pause: Callable[[], None],
        report: Callable[[OperatorError], None],
    ) -> Iterator[LogLine]:
        """Yield lines as they arrive, until ``ended()`` is true and two polls have no new line.

        Entries reach Cloud Logging seconds later, also after the job's end. A failed poll is
        reported and repeated. If the first or ``MAX_FAILURES`` polls fail, raises OperatorError.
        """
        seen: dict[str, datetime] = {}
        quiet, failures, over, answered = 0, 0, False, False
        while True:
            before = len(seen)
            since = max(seen.values()) - OVERLAP if seen else None
            try:
                over = ended()
                for entry in self._entries(_filter(job_id, replica, since), "timestamp asc"):
                    is_new = entry.insert_id not in seen
                    seen[entry.insert_id] = _time(entry)  # the local cloud corrects late lines
                    if is_new:
                        yield from _lines(entry)
                answered, failures = True, 0
            except OperatorError as error:
                failures += 1
                if not (answered or seen) or failures == MAX_FAILURES:
                    raise
                if failures == 1:
                    report(error)
            quiet = quiet + 1 if over and not failures and len(seen) == before else 0
            if quiet >= 2:
                return
            if since:
                seen = {key: time for key, time in seen.items() if time >= since}
            pause()

    def _entries(self, filter_: str, order: str, page_size: int = PAGE) -> Iterator[types.LogEntry]:
        request = {
            "resource_names": [f"projects/{self._project}"],
            "filter": filter_,
            "order_by": order,
            "page_size": page_size,
        }
        try:
            pages = read(self._client.list_log_entries, service="Cloud Logging", request=request)
            yield from _paged(pages)
        except NotFound as error:
            raise OperatorError(f"Cloud Logging: {error.message}") from None


def _paged(pages: Any) -> Iterator[types.LogEntry]:
    try:
        yield from pages
    except (GoogleAPICallError, RetryError) as error:
        raise OperatorError(f"Cloud Logging failed to return the rest of a log: {error}") from None


def _filter(job_id: str, replica: str | None, since: datetime | None = None) -> str:
    if job_id.isdecimal():
        parts = ['resource.type="ml_job"', f'resource.labels.job_id="{job_id}"']
    elif job_id.startswith(BUILD):
        build_id = job_id.removeprefix(BUILD)
        parts = ['resource.type="build"', f'resource.labels.build_id="{build_id}"']
    else:
        parts = ['resource.type="batch.googleapis.com/Job"', f'labels.job_uid="{job_id}"']
        if replica:
            number = replica.removeprefix("task-")
            parts.append(f'labels.task_id="task/{job_id}-{_GROUP}-{number}/0/0"')
            replica = None
    if replica:
        parts.append(f'resource.labels.task_name="{replica}"')
    if since:
        parts.append(f'timestamp>="{since.isoformat()}"')
    return " AND ".join(parts)


def _lines(entry: types.LogEntry) -> list[LogLine]:
    from google.logging.type.log_severity_pb2 import LogSeverity

    text = entry.text_payload
    if not text and entry.json_payload:
        text = str(dict(entry.json_payload).get("message", ""))  # pyright: ignore
    time = _time(entry).isoformat()
    replica = dict(entry.resource.labels).get("task_name", "")
    if task := _TASK.match(dict(entry.labels).get("task_id", "")):
        replica = f"task-{task[1]}"
    severity = entry.severity
    level = LogSeverity.Name(severity) if severity in LogSeverity.values() else str(severity)
    # A progress bar rewrites its line: return the final text, as in a terminal.
    return [
        LogLine(time, replica, level, part.rpartition("\r")[2])
        for part in text.rstrip("\n").split("\n")
    ]


def _time(entry: types.LogEntry) -> datetime:
    return entry.timestamp  # pyright: ignore[reportReturnType] (proto-plus gives a datetime)
