"""The added faults and the held calls, in one SQLite file of the home folder."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Kind, Service
from localgcp.home import Home
from localgcp.inventory.store import connection
from localgcp.vertex.records import JobRecord

_POLL_SECONDS: Final = 0.02
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS faults (
    id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, seen INTEGER NOT NULL DEFAULT 0,
    fired INTEGER NOT NULL DEFAULT 0, released INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS held (
    id INTEGER PRIMARY KEY AUTOINCREMENT, fault INTEGER NOT NULL, call TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class Entry:
    """An added fault with its counters."""

    id: int
    fault: Fault
    seen: int
    """Number of matching calls."""
    fired: int
    """Number of times that the fault happened."""
    held: tuple[str, ...] = ()
    """The calls that the fault holds now."""

    @property
    def spent(self) -> bool:
        """Return whether the fault cannot happen again."""
        return bool(self.fault.limit) and self.fired >= self.fault.limit

    @property
    def uses(self) -> str:
        """Return how often the fault happened, such as ``1 of 3``, or ``5`` without a limit."""
        return f"{self.fired} of {self.fault.limit}" if self.fault.limit else str(self.fired)

    def as_json(self) -> dict[str, object]:
        """Return the fault with its counts and held calls, for JSON output."""
        counts = {"seen": self.seen, "fired": self.fired, "spent": self.spent}
        return {"id": self.id, **self.fault.model_dump(mode="json"), **counts, "held": self.held}


def _fault(body: str) -> Fault | None:
    """Read a stored fault; None if another version stored it for a method unknown here."""
    try:
        return Fault.model_validate_json(body)
    except ValidationError:
        return None


class FaultTable:
    """The SQLite file of the faults, for use by several threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def any(self) -> bool:
        """Return whether the file exists. Every call of the local cloud runs this check."""
        return self.path.exists()

    def add(self, fault: Fault) -> int:
        """Add a fault and return its id."""
        with self._connect() as db:
            row = db.execute("INSERT INTO faults (body) VALUES (?)", (fault.model_dump_json(),))
            assert row.lastrowid is not None
            return row.lastrowid

    def entries(self) -> tuple[Entry, ...]:
        """Return all faults, oldest first."""
        if not self.any():
            return ()
        with self._connect() as db:
            held: dict[int, tuple[str, ...]] = {}
            for fault, call in db.execute("SELECT fault, call FROM held ORDER BY id"):
                held[fault] = (*held.get(fault, ()), call)
            rows = db.execute("SELECT id, body, seen, fired FROM faults ORDER BY id").fetchall()
        return tuple(
            Entry(id_, fault, seen, fired, held.get(id_, ()))
            for id_, body, seen, fired in rows
            if (fault := _fault(body))
        )

    def get(self, fault_id: int) -> Entry:
        """Return one fault. Raises LocalCloudError if no fault has this id."""
        for entry in self.entries():
            if entry.id == fault_id:
                return entry
        raise LocalCloudError(
            f"fault {fault_id} does not exist.", "`vt local fault list` lists the faults."
        )

    def clear(self, fault_id: int | None = None) -> int:
        """Remove one fault or all faults and return their number. Raises LocalCloudError."""
        if fault_id is not None:
            self.get(fault_id)
        if not self.any():
            return 0
        with self._connect() as db:
            deletion = "DELETE FROM faults WHERE ?1 IS NULL OR id = ?1"
            return db.execute(deletion, (fault_id,)).rowcount

    def count_call(
        self,
        service: Service,
        method: str,
        subjects: Callable[[Fault], list[str]],
        accept: Callable[[Fault], bool],
    ) -> list[Entry]:
        """Count a call for each matching accepted fault, and return the faults that happen."""
        matching = [
            entry.id
            for entry in self.entries()
            if not entry.spent
            and accept(entry.fault)
            and entry.fault.fits(
                service, method, subjects(entry.fault) if entry.fault.match else ()
            )
        ]
        if not matching:
            return []
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")  # count parallel calls one after the other
            entries = [entry for fault_id in matching if (entry := _count(db, fault_id))]
            db.execute("COMMIT")
        return entries

    def meet(
        self,
        entry: Entry,
        call: str,
        stopping: threading.Event,
        error: Callable[[str, str], Exception],
    ) -> bool:
        """Delay or hold a call; return False for a cleared fault. Raises ``error(code, text)``."""
        fault = entry.fault
        if fault.kind is Kind.ERROR:
            raise error(fault.code, f"fault {entry.id} of the local cloud")
        if fault.kind is Kind.DELAY:
            stopping.wait(fault.seconds)
        return fault.kind is not Kind.HOLD or self.hold(entry.id, call, stopping)

    def hold(self, fault_id: int, call: str, stopping: threading.Event) -> bool:
        """Hold a call until its fault is released; return False if the fault is cleared."""
        insertion = "INSERT INTO held (fault, call) VALUES (?, ?)"
        selection = "SELECT released FROM faults WHERE id = ?"
        with self._connect() as db:
            held = db.execute(insertion, (fault_id, call)).lastrowid
        try:
            while not stopping.wait(_POLL_SECONDS):
                with self._connect() as db:
                    row = db.execute(selection, (fault_id,)).fetchone()
                if row is None or row[0]:
                    return row is not None
            return False
        finally:
            with self._connect() as db:
                db.execute("DELETE FROM held WHERE id = ?", (held,))

    def release(self, fault_id: int) -> tuple[str, ...]:
        """Continue the calls that a fault holds, and return these calls. Raises LocalCloudError."""
        entry = self.get(fault_id)
        if entry.fault.kind is not Kind.HOLD:
            raise LocalCloudError(
                f"fault {fault_id} has kind {entry.fault.kind}; only faults of kind hold can "
                "be released."
            )
        with self._connect() as db:
            db.execute("UPDATE faults SET released = 1 WHERE id = ?", (fault_id,))
        return entry.held

    def wait_held(self, fault_id: int, seconds: float) -> str:
        """Wait until a fault holds a call, and return the call. Raises LocalCloudError."""
        deadline = time.monotonic() + seconds
        while not (held := self.get(fault_id).held):
            if time.monotonic() > deadline:
                raise LocalCloudError(f"fault {fault_id} held no call within {seconds:g} s.")
            time.sleep(_POLL_SECONDS)
        return held[0]

    def forget_held(self) -> None:
        """Delete the held calls of an earlier server."""
        if self.any():
            with self._connect() as db:
                db.execute("DELETE FROM held")

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        return connection(self.path, _SCHEMA)


def _count(db: sqlite3.Connection, fault_id: int) -> Entry | None:
    row = db.execute(
        "UPDATE faults SET seen = seen + 1 WHERE id = ? AND released = 0"
        " RETURNING body, seen, fired",
        (fault_id,),
    ).fetchone()
    if row is None:
        return None  # another process cleared or released the fault
    fault = Fault.model_validate_json(row[0])
    if not fault.happens(row[1], row[2]):
        return None
    db.execute("UPDATE faults SET fired = fired + 1 WHERE id = ?", (fault_id,))
    return Entry(fault_id, fault, row[1], row[2] + 1)


def inject(home: Home, fault: Fault) -> int:
    """Add a fault and return its id."""
    home.create()
    return FaultTable(home.faults).add(fault)


def clear(home: Home, fault_id: int | None = None) -> int:
    """Remove one fault or all faults and return their number. Raises LocalCloudError."""
    return FaultTable(home.faults).clear(fault_id)


def stockout_message(region: str) -> str:
    """Return the text of github.com/openreview/openreview-expertise/issues/401."""
    return f"STOCKOUT: Resources are insufficient in region: {region}."


@dataclass(frozen=True)
class JobFaults:
    """The faults of one running job."""

    table: FaultTable
    subjects: Sequence[str]
    """Texts in which a fault's ``match`` is searched."""
    first: str
    """The replica to kill if a fault names no replica."""
    is_spot: bool
    """True for the strategy SPOT. Only SPOT jobs lose machines."""

    def stockout(self) -> Entry | None:
        """Return the stock-out of this job, which requests machines now, or None."""
        return self._take(lambda fault: fault.kind is Kind.STOCKOUT)

    def preempted(self, names: Sequence[str], ran_seconds: float) -> Sequence[str]:
        """Return the replicas that lose their machines now."""
        if not self.is_spot:
            return ()
        due = self._take(
            lambda fault: (
                fault.kind is Kind.PREEMPT
                and ran_seconds >= (fault.seconds or 0)
                and fault.replica in ("", *names)
            )
        )
        return () if due is None else [due.fault.replica] if due.fault.replica else names

    def killed(self, name: str, ran_seconds: float) -> bool:
        """Return whether this running replica is killed now."""
        return None is not self._take(
            lambda fault: (
                fault.kind is Kind.KILL
                and ran_seconds >= (fault.seconds or 0)
                and (fault.replica or self.first) == name
            )
        )

    def _take(self, accept: Callable[[Fault], bool]) -> Entry | None:
        taken = self.table.count_call(Service.JOBS, "", lambda _: [*self.subjects], accept)
        return taken[0] if taken else None


def faults_of(table: FaultTable, job: JobRecord) -> JobFaults:
    """Return the faults of a CustomJob, which may match the strategy, machine or accelerator."""
    strategy = job.spec.get("scheduling", {}).get("strategy", "STANDARD")
    machines = [(pool or {}).get("machineSpec", {}) for pool in job.spec.get("workerPoolSpecs", ())]
    fields = ("machineType", "acceleratorType")
    requested = [machine.get(field, "") for machine in machines for field in fields]
    subjects = (job.job_id, job.display_name, *job.labels.values(), strategy, *requested)
    return JobFaults(table, subjects, "workerpool0-0", strategy == "SPOT")
