"""Log lines of jobs and image builds, and the accelerator utilization of jobs.

Vertex AI writes entries of resource type ``ml_job`` with the labels ``job_id`` and ``task_name``.
Entries of Batch have the labels ``job_uid`` and ``task_id``. Entries of its agent lack ``task_id``.
https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError
from google.auth.exceptions import GoogleAuthError

from vertex_training.catalog import ACCELERATOR, READ_PERMISSION, metric_filter
from vertex_training.customjob.google.job_service import local_address, read, service_client
from vertex_training.customjob.google.prerequisites import session
from vertex_training.customjob.protocol.idle import SKEW, Reading, Series
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
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import (
        LoggingServiceV2GrpcTransport,
    )

    types = (LoggingServiceV2Client, LoggingServiceV2GrpcTransport)
    client = service_client(*types, project, account=account, endpoint="logging.googleapis.com")
    return JobLogs(client, project)


class JobLogs:
    """Reader of a project's log entries. All methods raise OperatorError for a refused read."""

    def __init__(self, client: LoggingServiceV2Client, project: str) -> None:
        self._client, self._project = client, project

    def lines(self, job_id: str, replica: str | None = None) -> Iterator[LogLine]:
        """Yield all lines of a replica (None: of all replicas), oldest first."""
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
            yield from read(self._client.list_log_entries, service="Cloud Logging", request=request)
        except NotFound as error:
            raise OperatorError(f"Cloud Logging: {error.message}") from None
        except (GoogleAPICallError, RetryError) as error:
            raise OperatorError(f"Cloud Logging did not return the whole log: {error}") from None


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
    # A progress bar overwrites its line. Return the final text, as in a terminal.
    return [
        LogLine(time, replica, level, part.rpartition("\r")[2])
        for part in text.rstrip("\n").split("\n")
    ]


def _time(entry: types.LogEntry) -> datetime:
    return entry.timestamp  # pyright: ignore[reportReturnType] (proto-plus gives a datetime)


#: Time limit of a response of Cloud Monitoring in seconds.
MONITORING_TIMEOUT: Final = 20
#: Maximum number of pages: a thousand replicas with eight accelerators, for a day.
MOST_PAGES: Final = 200


def read_utilization(project: str, name: str, seconds: float, account: str) -> Reading:
    """Return the accelerator utilization of the job ``name`` in the last ``seconds``.

    Raises OperatorError if the response is incomplete or this machine's clock is wrong.
    """
    local = local_address(project)
    base = f"http://{local}" if local else "https://monitoring.googleapis.com"
    now, number = time.time(), name.rpartition("/")[2]
    query = {
        "filter": f'{metric_filter(ACCELERATOR)} AND resource.labels.job_id="{number}"',
        "interval.startTime": _text(now - seconds),
        "interval.endTime": _text(now),
        "view": "FULL",
    }
    series, token, then = list[Series](), "", 0.0
    for _ in range(MOST_PAGES):
        page = {"pageToken": token} if token else {}
        url = f"{base}/v3/projects/{project}/timeSeries"
        answer, sent_at = _get(url, {**query, **page}, local=bool(local), account=account)
        then = then or sent_at
        if abs(then - now) > SKEW:
            raise OperatorError(
                f"the clocks of Cloud Monitoring and this machine differ by {then - now:+.0f} s, "
                "or the response took that long"
            )
        try:
            if errors := answer.get("executionErrors"):
                raise OperatorError(f"the response of Cloud Monitoring is incomplete: {errors}")
            series += [_series(time_series, number) for time_series in answer.get("timeSeries", ())]
            token = answer.get("nextPageToken", "")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise OperatorError(
                f"the response of Cloud Monitoring has an unexpected form: {what}"
            ) from None
        if not token:
            return Reading(then, series)
    raise OperatorError(f"Cloud Monitoring returned more than {MOST_PAGES} pages for {name}")


def _series(answer: Mapping[str, Any], job: str) -> Series:
    resource = answer["resource"]["labels"]
    if resource["job_id"] != job:
        raise ValueError(f"unexpected series of job {resource['job_id']}")
    points = [
        (
            datetime.fromisoformat(point["interval"]["endTime"]).timestamp(),
            float(point["value"]["doubleValue"]),
        )
        for point in answer.get("points", ())
    ]
    # The label that distinguishes accelerators is undocumented: use all labels.
    labels = sorted(answer.get("metric", {}).get("labels", {}).items())
    return Series(resource["task_name"], ",".join(f"{k}={v}" for k, v in labels), points)


def _get(
    url: str, query: Mapping[str, str], *, local: bool, account: str
) -> tuple[Mapping[str, Any], float]:
    """Return the JSON response and the time in its Date header."""
    import requests

    try:
        connected = session(local=local, account=account)
        answer = connected.request("GET", url, params=query, timeout=MONITORING_TIMEOUT)
        if not answer.ok:
            hint = f" (requires {READ_PERMISSION})" if answer.status_code == 403 else ""
            raise OperatorError(
                f"Cloud Monitoring returned {answer.status_code} {answer.reason}{hint}"
            )
        return answer.json(), parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (requests.RequestException, GoogleAuthError, KeyError, ValueError) as error:
        raise OperatorError(f"Cloud Monitoring did not respond: {type(error).__name__}") from None


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
