"""A process that runs only when resumed, and stops at each external call.

The code under test blocks, as it does in a provider. Each process is a thread of which one at most
runs at any time: it stops at every call of a port and of the clock, and whoever resumes it decides
how that call goes. So the interleaving is a choice, and the same choices give the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.chaos.cloud import DEADLINE, LAG, Cloud, Send
from vertex_training.customjob.protocol.ports import (
    IntentRecord,
    JobSnapshot,
    ProcessEnvironment,
    StoredIntent,
    TurnRecord,
)
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)


class Fate(StrEnum):
    """Outcomes of the call at which a process stops."""

    GO = "go"
    ERROR = "error"
    """A read or write fails; a write's answer is lost; a request to send is lost."""
    AGAIN = "again"
    """After a write: the client repeated it, and its second try meets its first one's effect."""
    REFUSED = "refused"
    NOT_ALLOWED = "not allowed"
    LATE = "late"
    """Sending: the connection breaks, and the request takes effect ``delay`` seconds later."""
    KILL_PROVIDER = "kill provider"
    KILL_ENGINE = "kill engine"
    """The provider goes on as an orphan."""
    KILL_BOTH = "kill both"


@dataclass(frozen=True, slots=True)
class Order:
    """The decision with which a process is resumed."""

    fate: Fate = Fate.GO
    delay: float = 0.0
    """Seconds: until a late request lands, how old a list is, how long a cancellation takes."""


GO: Final = Order()


class Killed(BaseException):
    """The process dies here. Not an Exception, so that the protocol cannot catch it."""


class ProviderKilled(BaseException):
    """The provider dies here; its engine detects a closed connection."""


class Process:
    """One engine and its provider: ``work`` runs in a thread, in turns.

    It is both ports of the protocol, on ``cloud``. ``skew`` is what its own clock is off by.
    """

    def __init__(self, cloud: Cloud, work: Callable[[Process], None], skew: float = 0.0) -> None:
        self.cloud, self.skew = cloud, skew
        self.ended = self.engine_gone = False
        self.crash: BaseException | None = None
        self.point, self._order = "start", GO
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def resume(self, order: Order) -> None:
        """Run until the next call; at the return, no call is in progress."""
        self._order = order
        self._go.release()
        self._back.acquire()
        if self.ended:
            self._thread.join()

    def _run(self, work: Callable[[Process], None]) -> None:
        self._go.acquire()
        try:
            if self._order.fate is not Fate.KILL_BOTH:
                CURRENT.process = self
                work(self)
        except Killed:
            pass
        except BaseException as crash:  # judged by who resumed it, in the thread of the test
            self.crash = crash
        finally:
            self.ended = True
            self._back.release()

    def pause(self, point: str) -> Order:
        """Stop at ``point`` until resumed. Raises if the process must die here."""
        self.point = point
        self._back.release()
        self._go.acquire()
        order = self._order
        if order.fate is Fate.KILL_BOTH:
            raise Killed
        if order.fate is Fate.KILL_PROVIDER:
            raise ProviderKilled
        if order.fate is Fate.KILL_ENGINE:
            self.engine_gone = True
        return order

    def environment(self, engine_is_alive: Callable[[], bool] = lambda: True) -> ProcessEnvironment:
        """Return the provider's environment, with the clock of this process."""
        return ProcessEnvironment(self.sleep, lambda: self.cloud.time + self.skew, engine_is_alive)

    def sleep(self, seconds: float) -> None:
        """Let at least so much virtual time pass; more if other processes run meanwhile."""
        until = self.cloud.time + seconds
        self.pause("sleep")
        self.cloud.advance(max(until, self.cloud.time))

    def _read(self, point: str) -> Order:
        order = self.pause(point)
        if order.fate is Fate.ERROR:
            raise OperatorError(f"{point}: 503")
        return order

    def _written(self, point: str) -> None:
        order = self.pause(f"{point} done")
        if order.fate is Fate.ERROR:
            raise OperatorError(f"{point}: the answer was lost")

    # --- job service
    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send one create request like ``client.VertexJobs.create``."""
        if self.engine_gone:
            self.cloud.violations.append("an orphan began to send")
        send = self.cloud.enter(labels)
        order = self.pause("create")
        if order.fate in (Fate.REFUSED, Fate.NOT_ALLOWED):
            send.settled = True
            raise (PermissionDeniedError if order.fate is Fate.NOT_ALLOWED else NotSubmittedError)(
                "refused"
            )
        if order.fate is Fate.ERROR or self._overdue(send):
            raise InDoubtError("no answer")
        if order.fate is Fate.LATE:
            send.lands_at = min(self.cloud.time + order.delay, send.entered + DEADLINE)
            raise InDoubtError("no answer yet")
        job = self.cloud.land(send)
        if self.pause("create done").fate is Fate.ERROR or self._overdue(send):
            raise InDoubtError("the answer was lost")
        return job.record

    def _overdue(self, send: Send) -> bool:
        return self.cloud.time > send.entered + DEADLINE

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """Return the index, up to ``LAG`` old."""
        return self.cloud.find(request_id, min(self._read("find").delay, LAG))

    def get(self, name: str) -> JobSnapshot | None:
        """Return one job."""
        self._read("get")
        return self.cloud.get(name)

    def cancel(self, name: str) -> None:
        """Request a cancellation."""
        self.cloud.cancel(name, self._read("cancel").delay)
        self._written("cancel")

    def delete(self, name: str) -> None:
        """Delete a job's record."""
        self._read("delete")
        self.cloud.delete(name)
        self._written("delete")

    # --- intent store
    def read(self, request_id: str) -> StoredIntent | None:
        """Read a record, strongly consistent."""
        self._read("read")
        return self.cloud.records.get(request_id)

    def write(self, record: IntentRecord, generation: int) -> StoredIntent:
        """Compare and swap."""
        point = f"write {record.state}"
        self._read(point)
        stored = self.cloud.write(record, generation)
        self._stored(point)
        return stored

    def read_turn(self, key: str) -> TurnRecord | None:
        """Return the owner of the turn, strongly consistent."""
        self._read("turn read")
        return self.cloud.turns.get(key)

    def turn_keys(self) -> frozenset[str]:
        """Return the keys of all turns."""
        self._read("turn keys")
        return frozenset(self.cloud.turns)

    def write_turn(
        self, key: str, request_id: str, number: int, generation: int, *, withdrawn: bool = False
    ) -> None:
        """Compare and swap."""
        self._read("turn write")
        self.cloud.write_turn(key, request_id, number, generation, withdrawn=withdrawn)
        self._stored("turn write")

    def _stored(self, point: str) -> None:
        order = self.pause(f"{point} done")
        if order.fate is Fate.AGAIN:
            raise PreconditionFailedError
        if order.fate is Fate.ERROR:
            raise OperatorError(f"{point}: the answer was lost")

    def now(self) -> float:
        """Return the store's own time."""
        self._read("now")
        return self.cloud.time


class _Current(threading.local):
    process: Process


#: The process whose thread this is.
CURRENT: Final = _Current()
