"""Jobs and tasks of Batch as rows of SQLite: they outlive the server.

A job is deleted 60 days after its end (doc:batch/create-run-job); then its name is free. The time
is the clock's, which can be ahead of the machine's, so that those days can be rehearsed.
"""

from __future__ import annotations

import builtins
import json
import sqlite3
import threading
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from localgcp.batch import messages
from localgcp.home import Home, open_private
from localgcp.inventory.store import connection

#: After its end.
KEPT: Final = timedelta(days=60)
GROUP: Final = "group0"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS batch_jobs (
    name TEXT PRIMARY KEY, uid TEXT UNIQUE NOT NULL, project TEXT NOT NULL, region TEXT NOT NULL,
    body TEXT NOT NULL, state TEXT NOT NULL, events TEXT NOT NULL, create_time TEXT NOT NULL,
    update_time TEXT NOT NULL, start_time TEXT, end_time TEXT, operation TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch_tasks (
    uid TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, events TEXT NOT NULL,
    PRIMARY KEY (uid, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch_requests (
    id TEXT NOT NULL, target TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT NOT NULL,
    time TEXT NOT NULL, PRIMARY KEY (id, target)
) WITHOUT ROWID;
"""


class State(StrEnum):
    """States of a job (google.cloud.batch.v1.JobStatus.State)."""

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
        """The state as people say it; see ``vertex.records.JobState``."""
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
    """States of a task (google.cloud.batch.v1.TaskStatus.State)."""

    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    UNEXECUTED = "UNEXECUTED"


@dataclass(frozen=True)
class BatchJob:
    """One job. Times are RFC 3339 in UTC with microseconds, so they sort as text."""

    name: str
    """With the project's number."""
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
    """The one that cancels or deletes it."""

    @property
    def job_id(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2]

    @property
    def display_name(self) -> str:
        """Its id: jobs of Batch have no other name."""
        return self.job_id

    @property
    def last_event(self) -> str:
        """The description of the newest event; empty before there is one."""
        return str(self.events[-1].get("description", "")) if self.events else ""

    @property
    def error_message(self) -> str | None:
        """Why it failed; None of another state."""
        return self.last_event or None if self.state is State.FAILED else None

    @property
    def output_prefix(self) -> str | None:
        """The folder that ``AIP_MODEL_DIR`` is in, without a slash at the end, or None."""
        variables = self.spec.get("environment", {}).get("variables", {})
        return str(variables.get("AIP_MODEL_DIR", "")).removesuffix("/model/") or None

    @property
    def group(self) -> dict[str, Any]:
        """Its one task group."""
        return self.body["taskGroups"][0]

    @property
    def spec(self) -> dict[str, Any]:
        """What each task runs."""
        return self.group["taskSpec"]

    @property
    def task_count(self) -> int:
        return int(self.group["taskCount"])

    @property
    def policy(self) -> dict[str, Any]:
        """Of its machines; empty with an instance template."""
        instances = self.body.get("allocationPolicy", {}).get("instances") or [{}]
        return instances[0].get("policy", {})

    @property
    def account(self) -> str:
        """The address that its machines have."""
        return self.body["allocationPolicy"]["serviceAccount"]["email"]


@dataclass(frozen=True)
class BatchTask:
    """One task of a job."""

    number: int
    state: TaskState
    events: list[dict[str, Any]]


class Clock:
    """The time of Batch: this machine's, and what it was moved ahead by."""

    def __init__(self, home: Home) -> None:
        self._file = home.batch / "clock"

    def now(self) -> datetime:
        """The time in UTC."""
        try:
            ahead = float(self._file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            ahead = 0.0
        return datetime.now(UTC) + timedelta(seconds=ahead)

    def text(self, ago: timedelta = timedelta()) -> str:
        """A time as records hold it."""
        return (self.now() - ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def advance(self, by: timedelta) -> None:
        """Move it ahead, for all jobs of this home."""
        ahead = self.now() - datetime.now(UTC) + by
        self._file.parent.mkdir(0o700, exist_ok=True)
        with open_private(self._file, "w") as file:
            file.write(f"{ahead.total_seconds():.3f}")


class BatchTable:
    """All jobs; safe across threads and processes (a connection for each call)."""

    def __init__(self, home: Home) -> None:
        self.path, self.clock = home.database, Clock(home)
        self._told = home.notifications
        #: Held while a call changes a job, and while its end is settled.
        self.lock = threading.RLock()

    def insert(self, job: BatchJob) -> bool:
        """Add a job with its tasks. False if its name is used, which it is until it is deleted."""
        row = {**vars(job), "body": json.dumps(job.body), "events": json.dumps(job.events)}
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            marks = ", ".join("?" * len(row))
            done = db.execute(f"INSERT OR IGNORE INTO batch_jobs VALUES ({marks})", [*row.values()])
            if done.rowcount != 1:
                return False
            self._tell(job.body, job.name, job.state, 0, job.create_time)
            db.executemany(
                "INSERT INTO batch_tasks VALUES (?, ?, 'PENDING', '[]')",
                ((job.uid, number) for number in range(job.task_count)),
            )
            db.execute("COMMIT")
        return True

    def get(self, name: str) -> BatchJob | None:
        """The job, or None."""
        return next(iter(self._select("name = ?", (name,))), None)

    def of_uid(self, uid: str) -> BatchJob | None:
        """The job with this uid, or None."""
        return next(iter(self._select("uid = ?", (uid,))), None)

    def list(self, project: str | None = None, states: Iterable[State] = State) -> list[BatchJob]:
        """Jobs of a project (id; None: of any) in these states, newest first."""
        marks = ", ".join(f"'{state}'" for state in states)
        where = f"(?1 IS NULL OR project = ?1) AND state IN ({marks})"
        return self._select(where, (project,))

    def expired(self) -> builtins.list[BatchJob]:
        """Jobs that Google would have deleted by now."""
        marks = ", ".join(f"'{state}'" for state in ENDED)
        return self._select(f"end_time < ? AND state IN ({marks})", (self.clock.text(KEPT),))

    def move(self, name: str, to: State, only_from: Collection[State], why: str = "") -> bool:
        """Change the state if it is one of these, with an event. False if it was another.

        The one place where a state changes, so a job that was cancelled cannot succeed later.
        """
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT * FROM batch_jobs WHERE name = ?", (name,)).fetchone()
            if row is None or row["state"] not in only_from:
                return False
            time = self.clock.text()
            text = f"Job state is set from {row['state']} to {to} for job {name}."
            events = json.loads(row["events"])
            events.append(_event("STATUS_CHANGED", f"{text}{why and f' {why}'}", time))
            self._tell(json.loads(row["body"]), name, to, len(events), time)
            begun, ended = to is State.RUNNING, to in ENDED
            db.execute(
                "UPDATE batch_jobs SET state = ?, events = ?, update_time = ?,"
                " start_time = CASE WHEN ? THEN ? ELSE start_time END,"
                " end_time = CASE WHEN ? THEN ? ELSE end_time END WHERE name = ?",
                (to, json.dumps(events), time, begun, time, ended, time, name),
            )
            db.execute("COMMIT")
        return True

    def note(self, name: str, text: str) -> None:
        """Add an event that changes no state, unless it is the last one already."""
        job = self.get(name)
        if job is None or (job.events and job.events[-1]["description"] == text):
            return
        event = json.dumps(_event("OPERATIONAL_INFO", text, self.clock.text()))
        query = "UPDATE batch_jobs SET events = json_insert(events, '$[#]', json(?)) WHERE name = ?"
        with self._connect() as db:
            db.execute(query, (event, name))

    def set_operation(self, name: str, operation: str) -> None:
        """Note the operation that cancels or deletes a job."""
        with self._connect() as db:
            query = "UPDATE batch_jobs SET operation = ? WHERE name = ?"
            db.execute(query, (operation, name))

    def delete(self, job: BatchJob) -> None:
        """Remove a job and its tasks."""
        with self._connect() as db:
            db.execute("DELETE FROM batch_tasks WHERE uid = ?", (job.uid,))
            db.execute("DELETE FROM batch_jobs WHERE uid = ?", (job.uid,))

    def tasks(self, uid: str, state: TaskState | None = None) -> builtins.list[BatchTask]:
        """Tasks of a job, in order."""
        query = (
            "SELECT * FROM batch_tasks WHERE uid = ? AND (?2 IS NULL OR state = ?2) ORDER BY number"
        )
        with self._connect() as db:
            return [_task(row) for row in db.execute(query, (uid, state))]

    def task(self, uid: str, number: int) -> BatchTask | None:
        """One task, or None."""
        query = "SELECT * FROM batch_tasks WHERE uid = ? AND number = ?"
        with self._connect() as db:
            row = db.execute(query, (uid, number)).fetchone()
        return row and _task(row)

    def counts(self, uid: str) -> dict[str, int]:
        """How many tasks are in which state."""
        query = "SELECT state, count(*) FROM batch_tasks WHERE uid = ? GROUP BY state"
        with self._connect() as db:
            return {row[0]: row[1] for row in db.execute(query, (uid,))}

    def move_task(
        self, uid: str, number: int, to: TaskState, where: str = "", code: int | None = None
    ) -> str:
        """Change a task's state, with an event; returns its text. ``code``: of one that failed."""
        found = self.task(uid, number)
        if found is None:  # the job was deleted
            return ""
        reason = "" if code is None else f" with exit code {code}"
        if code == PREEMPTED:
            reason = f" due to Spot VM preemption{reason}"
        at = where and f" on {where}"
        text = f"Task state is updated from {found.state} to {to}{at}{reason}."
        time = self.clock.text()
        event = _event("STATUS_CHANGED", text, time) | {"taskState": str(to)}
        if code is not None:
            event["taskExecution"] = {"exitCode": code}
        if job := self.of_uid(uid):
            self._tell(job.body, job.name, to, len(found.events) + 1, time, number)
        query = "UPDATE batch_tasks SET state = ?, events = ? WHERE uid = ? AND number = ?"
        with self._connect() as db:
            db.execute(query, (to, json.dumps([*found.events, event]), uid, number))
        return text

    def skip_tasks(self, uid: str) -> None:
        """The tasks that have not begun never will: the job ends."""
        job, time = self.of_uid(uid), self.clock.text()
        if job and job.body.get("notifications"):
            for task in self.tasks(uid, TaskState.PENDING):
                change = len(task.events) + 1
                self._tell(job.body, job.name, TaskState.UNEXECUTED, change, time, task.number)
        with self._connect() as db:
            db.execute(
                "UPDATE batch_tasks SET state = 'UNEXECUTED' WHERE uid = ? AND state = 'PENDING'",
                (uid,),
            )

    def remembered(self, id_: str, target: str, since: str) -> tuple[str, str] | None:
        """Digest and answer of a request with this id on ``target``; None if none came since."""
        query = "SELECT * FROM batch_requests WHERE id = ? AND target = ? AND time >= ?"
        with self._connect() as db:
            row = db.execute(query, (id_, target, since)).fetchone()
        return row and (row["digest"], row["answer"])

    def remember(self, id_: str, target: str, digest: str, answer: str) -> None:
        """Note what a request was answered with."""
        row = (id_, target, digest, answer, self.clock.text())
        with self._connect() as db:
            db.execute("INSERT OR REPLACE INTO batch_requests VALUES (?, ?, ?, ?, ?)", row)

    def _tell(
        self,
        body: dict[str, Any],
        name: str,
        to: str,
        change: int,
        time: str,
        task: int | None = None,
    ) -> None:
        if told := body.get("notifications"):
            messages.write(self._told, told, name, to, change, time, task)

    def _select(self, where: str, values: tuple[Any, ...]) -> builtins.list[BatchJob]:
        query = f"SELECT * FROM batch_jobs WHERE {where} ORDER BY create_time DESC, name DESC"
        with self._connect() as db:
            return [_job(row) for row in db.execute(query, values)]

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        return connection(self.path, _SCHEMA)


#: Exit codes of the service (doc:batch/troubleshooting#reserved-exit-codes).
OTHER, PREEMPTED, LOST, OVER_TIME = 50000, 50001, 50002, 50005


def _event(kind: str, text: str, time: str) -> dict[str, Any]:
    return {"type": kind, "description": text, "eventTime": time}


def _job(row: sqlite3.Row) -> BatchJob:
    body, events = json.loads(row["body"]), json.loads(row["events"])
    return BatchJob(**{**dict(row), "body": body, "events": events, "state": State(row["state"])})


def _task(row: sqlite3.Row) -> BatchTask:
    return BatchTask(row["number"], TaskState(row["state"]), json.loads(row["events"]))
