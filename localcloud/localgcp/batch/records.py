"""Batch jobs and tasks as rows of SQLite, which persist across restarts of the server."""

from __future__ import annotations

import builtins
import hashlib
import json
import sqlite3
import threading
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from localgcp.alerting import Notification, write_notification
from localgcp.home import Home
from localgcp.inventory.store import Rows, connection

#: Alert name of a notification that no alert policy requested.
SOURCE: Final = "Batch"
GROUP: Final = "group0"


class State(StrEnum):
    """Job states (google.cloud.batch.v1.JobStatus.State)."""

    QUEUED = "QUEUED"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DELETING = "DELETION_IN_PROGRESS"
    CANCELLING = "CANCELLATION_IN_PROGRESS"
    CANCELLED = "CANCELLED"

    @property
    def word(self) -> str:
        """The state in display form, as in ``vertex.records.JobState``."""
        return self.value

    @property
    def terminal(self) -> bool:
        return self in ENDED


ENDED: Final = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
WAITING: Final = (State.QUEUED, State.SCHEDULED)
#: States in which a job can be cancelled.
ACTIVE: Final = (*WAITING, State.RUNNING)
LIVE: Final = (*ACTIVE, State.CANCELLING, State.DELETING)


class TaskState(StrEnum):
    """Task states (google.cloud.batch.v1.TaskStatus.State)."""

    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    UNEXECUTED = "UNEXECUTED"


@dataclass(frozen=True)
class BatchJob:
    """One Batch job. Times are RFC 3339 in UTC with microseconds, so they sort as text."""

    name: str
    """Full resource name, with the project's number."""
    uid: str
    project: str
    region: str
    body: dict[str, Any]
    """The Job in the API's JSON form, without its status."""
    state: State
    events: list[dict[str, Any]]
    create_time: str
    update_time: str
    start_time: str | None = None
    end_time: str | None = None
    operation: str = ""
    """Name of the operation that cancels or deletes the job."""

    @property
    def job_id(self) -> str:
        """The last part of the job's name."""
        return self.name.rpartition("/")[2]

    @property
    def display_name(self) -> str:
        """The job's id: Batch jobs have no display name."""
        return self.job_id

    @property
    def last_event(self) -> str:
        """The description of the newest event; empty if the job has no events."""
        return str(self.events[-1].get("description", "")) if self.events else ""

    @property
    def error_message(self) -> str | None:
        """The reason of the failure; None unless the job failed."""
        return self.last_event or None if self.state is State.FAILED else None

    @property
    def output_prefix(self) -> str | None:
        """The folder of ``AIP_MODEL_DIR`` without a trailing slash, or None."""
        variables = self.spec.get("environment", {}).get("variables", {})
        return str(variables.get("AIP_MODEL_DIR", "")).removesuffix("/model/") or None

    @property
    def group(self) -> dict[str, Any]:
        return self.body["taskGroups"][0]

    @property
    def spec(self) -> dict[str, Any]:
        return self.group["taskSpec"]

    @property
    def task_count(self) -> int:
        return int(self.group["taskCount"])

    @property
    def policy(self) -> dict[str, Any]:
        """The instance policy; empty if the job uses an instance template."""
        instances = self.body.get("allocationPolicy", {}).get("instances") or [{}]
        return instances[0].get("policy", {})

    @property
    def account(self) -> str:
        """The email address of the machines' service account."""
        return self.body["allocationPolicy"]["serviceAccount"]["email"]


@dataclass(frozen=True)
class BatchTask:
    uid: str
    """Uid of the task's job."""
    number: int
    state: TaskState = TaskState.PENDING
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


_JOBS: Final = Rows(BatchJob, "batch_jobs", "name", unique="uid")
_TASKS: Final = Rows(BatchTask, "batch_tasks", "uid", "number")


class BatchTable:
    """All Batch jobs; safe across threads and processes (a connection for each call)."""

    def __init__(self, home: Home) -> None:
        self.path, self._notifications = home.database, home.notifications
        #: Locked while a call changes a job, and while a cancellation or deletion completes.
        self.lock = threading.RLock()
        #: Offset of Batch's clock from the machine's clock; tests use it to pass limits of days.
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def time(self) -> str:
        """Return the current time in the format of the records."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def insert(self, job: BatchJob) -> bool:
        """Add a job with its tasks; return False if a job with this name exists."""
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            if not _JOBS.insert(db, job, "INSERT OR IGNORE"):
                return False
            self._publish(job, job.state, 0, job.create_time)
            for number in range(job.task_count):
                _TASKS.insert(db, BatchTask(job.uid, number))
            db.execute("COMMIT")
        return True

    def get(self, name: str) -> BatchJob | None:
        """Return the job with this name, or None."""
        return next(iter(self._select("name = ?", name)), None)

    def of_uid(self, uid: str) -> BatchJob | None:
        return next(iter(self._select("uid = ?", uid)), None)

    def list(self, project: str | None = None, states: Iterable[State] = State) -> list[BatchJob]:
        """Return the jobs in these states, newest first; without ``project``, of all projects."""
        marks = ", ".join(f"'{state}'" for state in states)
        where = f"(?1 IS NULL OR project = ?1) AND state IN ({marks})"
        return self._select(where, project)

    def move(self, name: str, to: State, only_from: Collection[State], why: str = "") -> bool:
        """Set the state and add an event if the state is one of ``only_from``; else return False.

        All state changes use this method, so a cancelled job cannot succeed later.
        """
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            job = next(iter(_JOBS.select(db, "WHERE name = ?", name)), None)
            if job is None or job.state not in only_from:
                return False
            time = self.time()
            text = f"Job state is set from {job.state} to {to} for job {name}."
            event = _event("STATUS_CHANGED", f"{text}{why and f' {why}'}", time)
            changed = replace(job, state=to, events=[*job.events, event], update_time=time)
            self._publish(changed, to, len(changed.events), time)
            if to is State.RUNNING:
                changed = replace(changed, start_time=time)
            if to in ENDED:
                changed = replace(changed, end_time=time)
            _JOBS.update(db, changed, "name = ?", name)
            db.execute("COMMIT")
        return True

    def note(self, name: str, text: str) -> None:
        """Add an event without a state change, unless the newest event has the same text."""
        job = self.get(name)
        if job is None or (job.events and job.events[-1]["description"] == text):
            return
        event = json.dumps(_event("OPERATIONAL_INFO", text, self.time()))
        query = "UPDATE batch_jobs SET events = json_insert(events, '$[#]', json(?)) WHERE name = ?"
        with self._connect() as db:
            db.execute(query, (event, name))

    def set_operation(self, name: str, operation: str) -> None:
        """Store the name of the operation that cancels or deletes a job."""
        query = "UPDATE batch_jobs SET operation = ? WHERE name = ?"
        with self._connect() as db:
            db.execute(query, (operation, name))

    def delete(self, job: BatchJob) -> None:
        """Delete a job and its tasks."""
        with self._connect() as db:
            db.execute("DELETE FROM batch_tasks WHERE uid = ?", (job.uid,))
            db.execute("DELETE FROM batch_jobs WHERE uid = ?", (job.uid,))

    def tasks(self, uid: str, state: TaskState | None = None) -> builtins.list[BatchTask]:
        with self._connect() as db:
            query = "WHERE uid = ?1 AND (?2 IS NULL OR state = ?2) ORDER BY number"
            return _TASKS.select(db, query, uid, state)

    def task(self, uid: str, number: int) -> BatchTask | None:
        with self._connect() as db:
            return next(iter(_TASKS.select(db, "WHERE uid = ? AND number = ?", uid, number)), None)

    def counts(self, uid: str) -> dict[str, int]:
        """Return the number of a job's tasks by state."""
        query = "SELECT state, count(*) FROM batch_tasks WHERE uid = ? GROUP BY state"
        with self._connect() as db:
            return {row[0]: row[1] for row in db.execute(query, (uid,))}

    def move_task(
        self, uid: str, number: int, to: TaskState, where: str = "", code: int | None = None
    ) -> str:
        """Change a task's state, add an event with its exit code, and return the event's text."""
        task = self.task(uid, number)
        if task is None:  # the job was deleted
            return ""
        reason = "" if code is None else f" with exit code {code}"
        if code == PREEMPTED:
            reason = f" due to Spot VM preemption{reason}"
        at = where and f" on {where}"
        text = f"Task state is updated from {task.state} to {to}{at}{reason}."
        time = self.time()
        event = _event("STATUS_CHANGED", text, time) | {"taskState": str(to)}
        if code is not None:
            event["taskExecution"] = {"exitCode": code}
        if job := self.of_uid(uid):
            self._publish(job, to, len(task.events) + 1, time, number)
        changed = replace(task, state=to, events=[*task.events, event])
        with self._connect() as db:
            _TASKS.update(db, changed, "uid = ? AND number = ?", uid, number)
        return text

    def skip_tasks(self, uid: str) -> None:
        """Set the state of a job's pending tasks to UNEXECUTED."""
        job, time = self.of_uid(uid), self.time()
        if job and job.body.get("notifications"):
            for task in self.tasks(uid, TaskState.PENDING):
                self._publish(job, TaskState.UNEXECUTED, len(task.events) + 1, time, task.number)
        with self._connect() as db:
            query = "UPDATE batch_tasks SET state = ? WHERE uid = ? AND state = ?"
            db.execute(query, (TaskState.UNEXECUTED, uid, TaskState.PENDING))

    def _publish(
        self, job: BatchJob, state: str, change: int, time: str, task: int | None = None
    ) -> None:
        """Write a file for each Pub/Sub topic about a state change of a job or a task.

        The file is written before the state. Its name depends only on the job, the task and the
        number of the change, so a restarted server writes the same file again.
        """
        level, key, name = "JOB", "job", job.name
        if task is not None:
            level, key, name = "TASK", "task", f"{job.name}/taskGroups/{GROUP}/tasks/{task}"
        kind, field = f"{level}_STATE_CHANGED", f"new{level.title()}State"
        for number, notification in enumerate(job.body.get("notifications", [])):
            requested = notification.get("message", {})
            if requested.get("type") != kind or requested.get(field, state) != state:
                continue
            message = Notification(
                time=datetime.fromisoformat(time),
                alert=SOURCE,
                title=f"{name.partition('/jobs/')[2]} is {state}",
                channel=f"pubsub {notification.get('pubsubTopic', '')}",
                labels={"job_id": job.job_id},
                text=json.dumps({"type": kind, field: state, key: name}, indent=2),
            )
            identity = hashlib.sha256(f"{name} {change} {number}".encode()).hexdigest()[:12]
            write_notification(self._notifications, message, f"batch-{identity}")
            print(f"message (not published): {message.title!r} to {message.channel}")

    def _select(self, where: str, *values: Any) -> builtins.list[BatchJob]:
        with self._connect() as db:
            order = "ORDER BY create_time DESC, name DESC"
            return _JOBS.select(db, f"WHERE {where} {order}", *values)

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        return connection(self.path, _JOBS.schema + _TASKS.schema)


#: Exit codes of the service (doc:batch/troubleshooting#reserved-exit-codes).
OTHER, PREEMPTED, LOST, OVER_TIME = 50000, 50001, 50002, 50005


def _event(kind: str, text: str, time: str) -> dict[str, Any]:
    return {"type": kind, "description": text, "eventTime": time}
