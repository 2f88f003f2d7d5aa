"""Custom jobs as rows of SQLite, which persist across restarts.

``vt local`` commands import this module, so it imports no Google library (1 s).
"""

from __future__ import annotations

import builtins
import secrets
import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from localgcp.inventory.store import Rows, connection, project_number

# Machines of reservations that jobs use. Triggers release the machines in the transaction that ends
# the job, so a crash cannot leave a claim of an ended job.
_CLAIMS: Final = """
CREATE TABLE IF NOT EXISTS reservation_claims (
    job_id TEXT NOT NULL, reservation TEXT NOT NULL, machines INTEGER NOT NULL,
    PRIMARY KEY (job_id, reservation)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS machines_of_a_job_at_rest AFTER UPDATE OF state ON custom_jobs
WHEN NEW.state NOT IN ('JOB_STATE_PENDING', 'JOB_STATE_RUNNING', 'JOB_STATE_CANCELLING')
BEGIN DELETE FROM reservation_claims WHERE job_id = NEW.job_id; END;
CREATE TRIGGER IF NOT EXISTS machines_of_a_job_gone AFTER DELETE ON custom_jobs
BEGIN DELETE FROM reservation_claims WHERE job_id = OLD.job_id; END;
"""


class JobState(StrEnum):
    """Job states in the local cloud, with the API's names (google.cloud.aiplatform.v1.JobState)."""

    QUEUED = "JOB_STATE_QUEUED"
    PENDING = "JOB_STATE_PENDING"
    RUNNING = "JOB_STATE_RUNNING"
    SUCCEEDED = "JOB_STATE_SUCCEEDED"
    FAILED = "JOB_STATE_FAILED"
    CANCELLING = "JOB_STATE_CANCELLING"
    CANCELLED = "JOB_STATE_CANCELLED"

    @property
    def word(self) -> str:
        """The state in display form, such as ``RUNNING``."""
        return self.value.removeprefix("JOB_STATE_")

    @property
    def terminal(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


LIVE_STATES: Final = tuple(state for state in JobState if not state.terminal)


@dataclass(frozen=True)
class JobRecord:
    """One job. Times are RFC 3339 in UTC with microseconds, so they sort as text."""

    #: Plural name of the jobs in resource names, and field with the specification.
    segment: ClassVar = "customJobs"
    spec_field: ClassVar = "jobSpec"

    job_id: str
    project: str
    number: str
    region: str
    display_name: str
    labels: dict[str, str]
    request: dict[str, Any]
    """The CustomJob in the create request, in the API's JSON form."""
    state: JobState
    create_time: str
    start_time: str | None
    end_time: str | None
    update_time: str
    error_code: int | None
    error_message: str | None

    @classmethod
    def new(cls, project: str, region: str, request: dict[str, Any], state: JobState) -> Self:
        """Return a new job with a new id; ``request`` is in the API's JSON form."""
        time = now()
        return cls(
            job_id=new_id(),
            project=project,
            number=project_number(project),
            region=region,
            display_name=request["displayName"],
            labels=request.get("labels", {}),
            request=request,
            state=state,
            create_time=time,
            start_time=None,
            end_time=None,
            update_time=time,
            error_code=None,
            error_message=None,
        )

    @property
    def name(self) -> str:
        return f"projects/{self.number}/locations/{self.region}/{self.segment}/{self.job_id}"

    @property
    def spec(self) -> dict[str, Any]:
        return self.request.get(self.spec_field, {})

    @property
    def output_prefix(self) -> str | None:
        """``baseOutputDirectory`` without a trailing slash, or None."""
        prefix = self.spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")
        return prefix.rstrip("/") or None


_R = TypeVar("_R", bound=JobRecord)


class RecordTable(Generic[_R]):
    """A table of jobs; safe across threads and processes (a connection for each call)."""

    rows: ClassVar[Rows[Any]]
    others: ClassVar = ""
    """Statements that create other missing parts of the database."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def insert(self, record: _R) -> None:
        with self._connect() as db:
            self.rows.insert(db, record)

    def get(self, job_id: str) -> _R | None:
        with self._connect() as db:
            return next(iter(self.rows.select(db, "WHERE job_id = ?", job_id)), None)

    def list(self, number: str | None = None, region: str | None = None) -> list[_R]:
        """Return the jobs of a project and a region (None: all), newest first."""
        query = (
            "WHERE (?1 IS NULL OR number = ?1) AND (?2 IS NULL OR region = ?2)"
            " ORDER BY create_time DESC, job_id DESC"
        )
        with self._connect() as db:
            return self.rows.select(db, query, number, region)

    def move(
        self,
        job_id: str,
        to: JobState,
        *,
        only_from: builtins.list[JobState] | tuple[JobState, ...] = LIVE_STATES,
        error: tuple[int, str] | None = None,
    ) -> bool:
        """Set the state and its times if the state is one of ``only_from``; else return False.

        All state changes use this method, so a cancelled job cannot succeed later.
        """
        time = now()
        code, message = error or (None, None)
        sources = ", ".join("?" * len(only_from))
        begins, ends = to is JobState.RUNNING, to.terminal
        values = (to, time, begins, time, ends, time, code, message, job_id, *only_from)
        with self._connect() as db:
            cursor = db.execute(
                f"UPDATE {self.rows.table} SET state = ?, update_time = ?,"
                " start_time = CASE WHEN ? THEN ? ELSE start_time END,"
                " end_time = CASE WHEN ? THEN ? ELSE end_time END,"
                " error_code = ?, error_message = ?"
                f" WHERE job_id = ? AND state IN ({sources})",
                values,
            )
            return cursor.rowcount == 1

    def delete(self, job_id: str) -> bool:
        """Delete a job; return False if it does not exist."""
        query = f"DELETE FROM {self.rows.table} WHERE job_id = ?"
        with self._connect() as db:
            return db.execute(query, (job_id,)).rowcount == 1

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        schema = f"PRAGMA synchronous = NORMAL; {self.rows.schema} {self.others}"
        return connection(self.path, schema)


class JobTable(RecordTable[JobRecord]):
    """The table ``custom_jobs``, and the reservation machines of each job."""

    rows = Rows(JobRecord, "custom_jobs", "job_id")
    others = _CLAIMS

    def claim(self, job_id: str, wanted: dict[str, int], limits: dict[str, int]) -> bool:
        """Claim machines by reservation path, all or none; return False if too few are free.

        ``limits``: the number of machines of each reservation.
        """
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")  # A return without COMMIT rolls back.
            for reservation, machines in wanted.items():
                if _used(db, reservation) + machines > limits[reservation]:
                    return False
            db.executemany(
                "INSERT INTO reservation_claims VALUES (?, ?, ?)",
                [(job_id, reservation, machines) for reservation, machines in wanted.items()],
            )
            db.execute("COMMIT")
        return True

    def used(self, reservation: str) -> int:
        """Return the number of machines of a reservation (path) that jobs use."""
        with self._connect() as db:
            return _used(db, reservation)

    def users(self, reservation: str) -> builtins.list[JobRecord]:
        query = "JOIN reservation_claims USING (job_id) WHERE reservation = ? ORDER BY create_time"
        with self._connect() as db:
            return self.rows.select(db, query, reservation)


def _used(db: sqlite3.Connection, reservation: str) -> int:
    total = "SELECT coalesce(sum(machines), 0) FROM reservation_claims WHERE reservation = ?"
    return db.execute(total, (reservation,)).fetchone()[0]


def now() -> str:
    """Return the current time in the format of the records."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id() -> str:
    """Return a random id in the format of the service."""
    return str(10**18 + secrets.randbelow(8 * 10**18))
