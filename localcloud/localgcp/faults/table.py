"""The added faults and the calls that they hold, in one SQLite file of the home folder.

Commands write it, the server reads it at every call. Until the first fault is added there is
no file, and a call costs one look for it. Faults outlive the server: a restart is one of the things
worth rehearsing with them.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Kind, Service
from localgcp.home import Home
from localgcp.inventory.store import connection

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
    """A fault, the calls that it now holds, and its counts of matching calls and of events."""

    id: int
    fault: Fault
    seen: int
    fired: int
    held: tuple[str, ...] = ()

    @property
    def spent(self) -> bool:
        """Return whether the fault cannot happen again."""
        return bool(self.fault.limit) and self.fired >= self.fault.limit

    @property
    def uses(self) -> str:
        """Return the number of times the fault happened: ``1 of 3``, or ``5`` without a limit."""
        return f"{self.fired} of {self.fault.limit}" if self.fault.limit else str(self.fired)

    def as_json(self) -> dict[str, object]:
        """Return the fault with its counts and held calls, for JSON output."""
        counts = {"seen": self.seen, "fired": self.fired, "spent": self.spent}
        return {"id": self.id, **self.fault.model_dump(mode="json"), **counts, "held": self.held}


class FaultTable:
    """The SQLite file; safe across threads and processes (a connection for each call)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def any(self) -> bool:
        """Return whether faults may exist; checks only the file system, because every call needs
        it.
        """
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
            Entry(id_, Fault.model_validate_json(body), seen, fired, held.get(id_, ()))
            for id_, body, seen, fired in rows
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
        """Remove one fault or all faults and return their number; the calls that they hold fail.

        Raises LocalCloudError if there is none of this id.
        """
        if fault_id is not None:
            self.get(fault_id)
        if not self.any():
            return 0
        with self._connect() as db:
            return db.execute(
                "DELETE FROM faults WHERE ?1 IS NULL OR id = ?1", (fault_id,)
            ).rowcount

    def count_call(
        self,
        service: Service,
        method: str,
        subjects: Callable[[Fault], list[str]],
        accept: Callable[[Fault], bool],
    ) -> list[Entry]:
        """Count a call against the matching accepted faults, and return the faults that happen."""
        fitting = [
            entry.id
            for entry in self.entries()
            if not entry.spent
            and accept(entry.fault)
            and entry.fault.fits(
                service, method, subjects(entry.fault) if entry.fault.match else ()
            )
        ]
        if not fitting:
            return []
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")  # two calls at once are counted one after the other
            taken = [entry for fault_id in fitting if (entry := _count(db, fault_id))]
            db.execute("COMMIT")
        return taken

    def meet(
        self,
        entry: Entry,
        call: str,
        stopping: threading.Event,
        error: Callable[[str, str], Exception],
    ) -> bool:
        """Delay or hold a call; return False if the call was held and its fault was cleared.

        Raises ``error(code, text)`` for a fault of kind ``error``. Other kinds are the caller's.
        """
        fault = entry.fault
        if fault.kind is Kind.ERROR:
            raise error(fault.code, f"fault {entry.id} of the local cloud")
        if fault.kind is Kind.DELAY:
            stopping.wait(fault.seconds)
        return fault.kind is not Kind.HOLD or self.hold(entry.id, call, stopping)

    def hold(self, fault_id: int, call: str, stopping: threading.Event) -> bool:
        """Wait until the fault is released. False if it was cleared, or the server stops."""
        with self._connect() as db:
            held = db.execute(
                "INSERT INTO held (fault, call) VALUES (?, ?)", (fault_id, call)
            ).lastrowid
        try:
            while (released := self._released(fault_id)) is False:
                if stopping.wait(_POLL_SECONDS):
                    return False
            return bool(released)
        finally:
            with self._connect() as db:
                db.execute("DELETE FROM held WHERE id = ?", (held,))

    def release(self, fault_id: int) -> tuple[str, ...]:
        """Let a fault's held calls continue, hold no later calls, and return the released calls.

        Raises LocalCloudError if there is no such fault, or it is none that holds.
        """
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
        """Wait until a fault holds a call, and return the call.

        Raises LocalCloudError after ``seconds``.
        """
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

    def _released(self, fault_id: int) -> bool | None:
        with self._connect() as db:
            row = db.execute("SELECT released FROM faults WHERE id = ?", (fault_id,)).fetchone()
        return None if row is None else bool(row[0])

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        return connection(self.path, _SCHEMA)


def _count(db: sqlite3.Connection, fault_id: int) -> Entry | None:
    """Count a matching call; return the fault if it happens, else None."""
    row = db.execute(
        "UPDATE faults SET seen = seen + 1 WHERE id = ? AND released = 0"
        " RETURNING body, seen, fired",
        (fault_id,),
    ).fetchone()
    if row is None:
        return None  # cleared or released meanwhile
    fault = Fault.model_validate_json(row[0])
    if not fault.happens(row[1], row[2]):
        return None
    db.execute("UPDATE faults SET fired = fired + 1 WHERE id = ?", (fault_id,))
    return Entry(fault_id, fault, row[1], row[2] + 1)


def inject(home: Home, fault: Fault) -> int:
    """Add a fault, effective at once, and return its id."""
    home.create()
    return FaultTable(home.faults).add(fault)


def clear(home: Home, fault_id: int | None = None) -> int:
    """Remove one fault or all faults, effective at once, and return their number.

    Raises LocalCloudError if there is no fault of this id.
    """
    return FaultTable(home.faults).clear(fault_id)
