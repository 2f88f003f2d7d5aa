"""Evaluates alert policies against the logs of finished jobs, and writes notifications.

Once a second, if an alert is declared that can be judged. A line of a job is looked at when the job
has ended; Google looks at it when it is written.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from localgcp.alerting import policies, spool
from localgcp.alerting.policies import LogAlert
from localgcp.alerting.spool import Notification
from localgcp.clients.log_filters import LogFilter
from localgcp.home import Home, touch_private
from localgcp.inventory.store import ALERT_POLICY, CHANNEL, Store
from localgcp.system.processes import make_thread
from localgcp.vertex.records import JobRecord

if TYPE_CHECKING:
    from google.cloud.logging_v2 import types

_SECONDS: Final = 1.0
#: Jobs that ended within this time before an earlier server's last evaluation are evaluated again.
_SLACK: Final = timedelta(seconds=10)
_VARIABLE: Final = re.compile(r"\$\{(log\.extracted_label|resource\.labels?)\.(\w+)\}")

Entries = Callable[[str, LogFilter, str], Iterator["types.LogEntry"]]


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
        self._over = threading.Event()
        self._looked = set[str]()
        self._thread = make_thread(self._run)

    def start(self) -> None:
        """Start the thread; it begins with jobs that an earlier server did not evaluate."""
        self._thread.start()

    def stop(self) -> None:
        """Evaluate once more, then end the thread."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            last = self._over.wait(_SECONDS)
            if not self._home.root.exists():
                return  # somebody removed it: to read the inventory would make it anew
            try:
                self.look()
            except Exception:  # one bad look must not end those that follow; the log has it
                traceback.print_exc()
            if last:
                return

    def look(self) -> None:
        """Write the notifications of jobs that ended since the last evaluation."""
        alerts, _ = policies.read(self._store.list(ALERT_POLICY))
        if not alerts:
            return
        marker = self._home.notifications / ".looked"
        since, now = _time_of(marker), datetime.now(UTC)
        ended = [job for job in self._jobs() if job.end_time and job.job_id not in self._looked]
        written = spool.read(self._home.notifications) if ended else []
        for job in ended:
            end = datetime.fromisoformat(str(job.end_time))
            of_job = [a for a in alerts if a.project == job.project and a.created <= end]
            if of_job and end >= since - _SLACK and not self._is_trial(job.job_id):
                for alert in of_job:  # a trial is last_notified as a part of its tuning job
                    written += self._judge(alert, job, written)
            self._looked.add(job.job_id)
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
        for log_filter, extractors in alert.filters:
            for entry in self._entries(job.project, log_filter, job.job_id):
                time = _timestamp(entry)
                if time < alert.created:
                    continue
                labels = {
                    name: str(entry.resource.labels.get(field.rpartition(".")[2], ""))
                    for name, field in extractors.items()
                }
                key = frozenset(labels.items())
                if key in last_notified and time < last_notified[key] + alert.pause:
                    continue
                last_notified[key] = time
                notifications += self._notify(alert, entry, time, labels)
        return notifications

    def _notify(
        self, alert: LogAlert, entry: types.LogEntry, time: datetime, labels: Mapping[str, str]
    ) -> Iterator[Notification]:
        text = _filled_in(alert.text, labels, dict(entry.resource.labels))
        for channel in alert.channels or ("",):
            to = _where(self._store, channel)
            note = Notification(time, alert.id, alert.title, to, labels, text)
            # The same line under the same name: a look that was cut short is repeated as it was.
            identity = f"{alert.id} {channel} {entry.insert_id}"
            digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
            spool.write(self._home.notifications, note, f"{time:%Y%m%dT%H%M%S}-{digest}")
            print(f"alert (stand-in, no notification is sent): {alert.title!r} to {to}")
            yield note


def _where(store: Store, channel: str) -> str:
    resource = store.get(CHANNEL, channel)
    if resource is None:
        return (
            (f"no recipient: channel {channel} does not exist")
            if channel
            else ("no recipient: the alert policy has no channel")
        )
    values: dict[str, Any] = resource.inputs.get("labels") or {}
    off = (
        ""
        if resource.inputs.get("enabled") is not False
        else ("no recipient, channel is disabled: ")
    )
    return f"{off}{resource.inputs.get('type')} {' '.join(map(str, values.values()))}"


def _filled_in(text: str, labels: Mapping[str, str], resource: Mapping[str, str]) -> str:
    def value(placeholder: re.Match[str]) -> str:
        values = labels if placeholder[1] == "log.extracted_label" else resource
        return values.get(placeholder[2], placeholder[0])

    return _VARIABLE.sub(value, text)


def _timestamp(entry: types.LogEntry) -> datetime:
    time: Any = entry.timestamp
    return datetime.fromtimestamp(time.timestamp(), UTC)


def _time_of(marker: Path) -> datetime:
    try:
        return datetime.fromtimestamp(marker.stat().st_mtime, UTC)
    except FileNotFoundError:
        return datetime.fromtimestamp(0, UTC) + _SLACK
