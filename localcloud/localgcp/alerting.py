"""Cloud Monitoring alerts on log lines of jobs; notifications are written to files, never sent."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from localgcp.clients import log_filters
from localgcp.clients.log_filters import LogFilter
from localgcp.errors import FilterError
from localgcp.home import Home, open_private, touch_private
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, Store, StoredResource
from localgcp.system.processes import make_thread

if TYPE_CHECKING:
    from localgcp.vertex.log_entries import LogLine
    from localgcp.vertex.records import JobRecord

STAND_IN: Final = "stand-in of the local cloud: no notification is sent"


@dataclass(frozen=True)
class Notification:
    """A notification for one channel."""

    time: datetime
    alert: str
    """Id of the alert policy."""
    title: str
    channel: str
    """Type and address of the channel, such as ``email ml@example.com``."""
    labels: Mapping[str, str]
    """Labels from the log line, such as ``job_id``."""
    text: str = ""


def write_notification(folder: Path, note: Notification, name: str) -> None:
    """Write a notification to the file ``name``, or replace the file."""
    folder.mkdir(0o700, exist_ok=True)
    target = folder / f"{name}.json"
    document = {"note": STAND_IN, **asdict(note), "time": note.time.isoformat()}
    with open_private(target.with_suffix(".part"), "wb") as file:
        file.write(json.dumps(document, indent=2).encode() + b"\n")
    os.replace(target.with_suffix(".part"), target)


def read_notifications(folder: Path) -> list[Notification]:
    """Return all notifications, oldest first."""
    notifications = list[Notification]()
    for file in folder.glob("*.json"):
        document = json.loads(file.read_bytes())
        del document["note"]
        time = datetime.fromisoformat(document.pop("time"))
        notifications.append(Notification(time, **document))
    return sorted(notifications, key=lambda note: (note.time, note.alert, note.channel))


#: Fields in filters. The log lines of jobs have no severity.
KNOWN: Final = (
    *("resource.type", "resource.labels.job_id", "resource.labels.task_name"),
    *("resource.labels.project_id", "textPayload", "logName"),
)
#: Resource type of the log lines of jobs and tuning jobs.
OF_JOBS: Final = "ml_job"


@dataclass(frozen=True)
class LogAlert:
    """An alert policy that matches log lines of jobs."""

    id: str
    project: str
    title: str
    created: datetime
    """Creation time. Earlier log lines cause no notification."""
    filter: LogFilter
    extractors: Mapping[str, str]
    """Label -> field of the log line."""
    channels: tuple[str, ...]
    text: str
    """The policy's documentation, which may contain variables."""
    pause: timedelta
    """Minimum time between two notifications with the same labels."""


def read_alerts(resources: Iterable[StoredResource]) -> tuple[list[LogAlert], dict[str, str]]:
    """Return the alerts to evaluate, and by title the reasons for not evaluating other alerts."""
    alerts, others = list[LogAlert](), dict[str, str]()
    for resource in resources:
        title = str(resource.inputs.get("displayName") or resource.id)
        if resource.type == BUDGET:
            others[title] = "the local cloud has no costs"
        elif resource.type == ALERT_POLICY and resource.inputs.get("enabled") is not False:
            try:
                alerts.append(_alert(resource, title))
            except FilterError as error:
                others[title] = str(error)
            except (AttributeError, LookupError, TypeError, ValueError):
                others[title] = "the stored alert policy cannot be read"
    return alerts, others


def _alert(policy: StoredResource, title: str) -> LogAlert:
    inputs = policy.inputs
    documentation = inputs.get("documentation") or {}
    strategy = inputs.get("alertStrategy") or {}
    limit = (strategy.get("notificationRateLimit") or {}).get("period") or "0s"
    # A policy with a condition on log lines has no other conditions.
    log_filter, extractors = _condition(inputs["conditions"][0])
    return LogAlert(
        id=policy.id,
        project=policy.project,
        title=title,
        created=datetime.fromisoformat(policy.outputs["creationRecords"][0]["mutateTime"]),
        filter=log_filter,
        extractors=extractors,
        channels=tuple(inputs.get("notificationChannels") or []),
        text=str(documentation.get("content") or ""),
        pause=timedelta(seconds=float(str(limit).removesuffix("s"))),
    )


def _condition(condition: Mapping[str, Any]) -> tuple[LogFilter, Mapping[str, str]]:
    if not (match := condition.get("conditionMatchedLog")):
        raise FilterError("the local cloud has no metrics")
    labels = dict[str, str]()
    for label, extractor in (match.get("labelExtractors") or {}).items():
        field = re.fullmatch(r"EXTRACT\((resource\.labels\.\w+)\)", str(extractor))
        if field is None:
            raise FilterError(f"the local cloud does not support the extractor {extractor}")
        labels[label] = field[1]
    log_filter = log_filters.parse(str(match.get("filter")), KNOWN)
    if (kind := log_filter.equal.get("resource.type", OF_JOBS)) != OF_JOBS:
        raise FilterError(f"the local cloud evaluates only log lines of {OF_JOBS}, not of {kind}")
    return log_filter, labels


#: Jobs that ended up to this time before the last evaluation are evaluated again.
_SLACK: Final = timedelta(seconds=10)
Entries = Callable[[str, LogFilter, str], Iterator["LogLine"]]


class Alerting:
    """Evaluates alert policies against the logs of finished jobs once a second, in a thread."""

    def __init__(
        self,
        home: Home,
        store: Store,
        jobs: Callable[[], Iterable[JobRecord]],
        is_trial: Callable[[str], bool],
        entries: Entries,
    ) -> None:
        self._home, self._store, self._jobs, self._entries = home, store, jobs, entries
        self._is_trial = is_trial
        self._stopping = threading.Event()
        self._evaluated = set[str]()
        self._thread = make_thread(self._run)

    def start(self) -> None:
        """Start the thread, which first evaluates jobs that an earlier server did not evaluate."""
        self._thread.start()

    def stop(self) -> None:
        """Evaluate once more, then end the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            last = self._stopping.wait(1.0)
            if not self._home.root.exists():
                return  # reading the inventory would create the removed home again
            try:
                self.look()
            except Exception:  # later evaluations may succeed
                traceback.print_exc()
            if last:
                return

    def look(self) -> None:
        """Write the notifications of jobs that ended since the last evaluation."""
        alerts, _ = read_alerts(self._store.list(ALERT_POLICY))
        if not alerts:
            return
        marker = self._home.notifications / ".looked"
        now = datetime.now(UTC)
        try:
            since = datetime.fromtimestamp(marker.stat().st_mtime, UTC) - _SLACK
        except FileNotFoundError:
            since = datetime.fromtimestamp(0, UTC)
        ended = [job for job in self._jobs() if job.end_time and job.job_id not in self._evaluated]
        written = read_notifications(self._home.notifications) if ended else []
        for job in ended:
            end = datetime.fromisoformat(str(job.end_time))
            of_job = [a for a in alerts if a.project == job.project and a.created <= end]
            # The log of a tuning job contains the lines of its trials.
            if of_job and end >= since and not self._is_trial(job.job_id):
                for alert in of_job:
                    written += self._judge(alert, job, written)
            self._evaluated.add(job.job_id)
        self._home.notifications.mkdir(0o700, exist_ok=True)
        touch_private(marker)
        os.utime(marker, (now.timestamp(), now.timestamp()))

    def _judge(
        self, alert: LogAlert, job: JobRecord, before: list[Notification]
    ) -> list[Notification]:
        last_notified = {
            frozenset(notification.labels.items()): notification.time
            for notification in before
            if notification.alert == alert.id
        }
        notifications = list[Notification]()
        for entry in self._entries(job.project, alert.filter, job.job_id):
            time = entry.timestamp.astimezone(UTC)
            labels = {name: entry.value(field) for name, field in alert.extractors.items()}
            key = frozenset(labels.items())
            is_paused = key in last_notified and time < last_notified[key] + alert.pause
            if time >= alert.created and not is_paused:
                last_notified[key] = time
                notifications += self._notify(alert, entry, time, labels)
        return notifications

    def _notify(
        self, alert: LogAlert, entry: LogLine, time: datetime, labels: Mapping[str, str]
    ) -> Iterator[Notification]:
        def value(variable: re.Match[str]) -> str:
            is_extracted = variable[1] == "log.extracted_label"
            values = labels if is_extracted else entry.resource_labels
            return values.get(variable[2], variable[0])

        variables = r"\$\{(log\.extracted_label|resource\.labels?)\.(\w+)\}"
        text = re.sub(variables, value, alert.text)
        for channel in alert.channels or ("",):
            to = _address(self._store, channel)
            note = Notification(time, alert.id, alert.title, to, labels, text)
            # A repeated evaluation writes the same file again.
            identity = f"{alert.id} {channel} {entry.insert_id}"
            digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
            write_notification(self._home.notifications, note, f"{time:%Y%m%dT%H%M%S}-{digest}")
            print(f"alert (stand-in, no notification is sent): {alert.title!r} to {to}")
            yield note


def _address(store: Store, channel: str) -> str:
    resource = store.get(CHANNEL, channel)
    if not channel:
        return "no recipient: the alert policy has no channel"
    if resource is None:
        return f"no recipient: channel {channel} does not exist"
    values: dict[str, Any] = resource.inputs.get("labels") or {}
    is_off = resource.inputs.get("enabled") is False
    prefix = "no recipient, channel is disabled: " if is_off else ""
    return f"{prefix}{resource.inputs.get('type')} {' '.join(map(str, values.values()))}"
