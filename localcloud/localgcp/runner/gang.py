"""Runs all replicas of a job together, and decides about restarts and retries.

Each replica has a thread that waits for its process. The calling thread handles ends, faults, the
timeout and cancellation.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from localgcp.errors import CommandNotFoundError, JobCancelledError
from localgcp.faults.table import JobFaults
from localgcp.runner import replica
from localgcp.runner.environment import Folders
from localgcp.runner.replica import Launch
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder
from localgcp.vertex.job_logs import JobLog

WORKER_RESTARTS: Final = 5
JOB_RETRIES: Final = 3
PREEMPTIONS: Final = 6

#: Exit codes after SIGABRT and SIGSEGV.
_TRANSIENT: Final = frozenset({6, 134, 11, 139})
#: Exit codes after SIGKILL and SIGTERM (128 + N), which code does not return by mistake.
_KILLED: Final = frozenset({137, 143})


class Action(Enum):
    """Actions of the service after the end of a replica."""

    CONTINUE = "continue"
    SUCCEED = "succeed"
    FAIL = "fail"
    RESTART_REPLICAS = "restart replicas"
    """Restart the decision's replicas on the same machines."""
    RESTART_ALL = "restart all"
    """Restart all replicas on the same machines."""
    RETRY_JOB = "retry job"
    """Start all replicas on new machines."""


@dataclass(frozen=True)
class End:
    """The end of a replica: its name and exit code."""

    name: str
    code: int


@dataclass(frozen=True)
class Decision:
    """An action, with the failed replica or the replicas to restart."""

    action: Action
    ends: tuple[End, ...] = ()
    note: str = ""
    """Log line about the cause, and its number and limit."""
    stockout: bool = False
    """True if the job fails because no machines are left."""


@dataclass
class LifeCycle:
    """Counts restarts and retries of one job.

    Sources: doc:training/understanding-training-service (2026-08-22), doc:training/use-spot-vms.

    =======================================  ================================================
    end of a replica                         effect
    =======================================  ================================================
    the primary replica exits with 0         the job has succeeded; all replicas are ended
    another replica exits with 0             the other replicas continue
    exit 6, 134, 11, 139 (SIGABRT, SIGSEGV)  the whole job runs again, up to 3 times
    any other exit code                      the job fails
    SIGKILL or SIGTERM from outside          the replica runs again, up to 5 times each; then
                                             the whole job, up to 3 times
    preemption (SPOT)                        the whole job runs again, up to 6 times
    =======================================  ================================================
    """

    primary: str
    disable_retries: bool = False
    restart_all: bool = False
    retries: int = 0
    preemptions: int = 0
    restarts: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def of(cls, primary: str, scheduling: Mapping[str, Any]) -> LifeCycle:
        """Return the life cycle for a job's ``scheduling`` in the API's JSON form."""
        once = bool(scheduling.get("disableRetries"))
        # T:custom_job: disableRetries overrides restartJobOnWorkerRestart.
        all_ = bool(scheduling.get("restartJobOnWorkerRestart")) and not once
        return cls(primary, once, all_)

    def preempt(self, names: Sequence[str]) -> Decision:
        """Count a preemption; return FAIL if the limit is reached or retries are disabled."""
        self.preemptions += 1
        ends = tuple(End(name, 143) for name in names)
        one = f"{names[0]} lost its machine"
        lost = one if len(names) == 1 else "all replicas lost their machines"
        if self.disable_retries or self.preemptions > PREEMPTIONS:
            return Decision(Action.FAIL, ends, f"preempted: {lost}", stockout=True)
        note = f"preempted: {lost} ({self.preemptions} of {PREEMPTIONS})"
        return Decision(Action.RETRY_JOB, ends, note)

    def decide(self, ends: Sequence[End]) -> Decision:
        """Decide after replicas ended at the same time; a killed replica is the cause."""
        failed = [end for end in ends if end.code]
        if any(end.name == self.primary and not end.code for end in ends):
            return Decision(Action.SUCCEED)
        if not failed:
            return Decision(Action.CONTINUE)
        killed = [end for end in failed if end.code in _KILLED]
        transient = [end for end in failed if end.code in _TRANSIENT]
        cause = (killed or transient or failed)[0]
        if self.disable_retries or not (killed or transient):
            return Decision(Action.FAIL, (cause,))
        if not killed or any(self.restarts[end.name] >= WORKER_RESTARTS for end in killed):
            return self._retry(cause)
        self.restarts.update(end.name for end in killed)
        counted = ", ".join(
            f"{end.name} was killed (restart {self.restarts[end.name]} of {WORKER_RESTARTS})"
            for end in killed
        )
        if self.restart_all:
            note = f"{counted}; all replicas restart, because of restartJobOnWorkerRestart"
            return Decision(Action.RESTART_ALL, tuple(killed), note)
        return Decision(Action.RESTART_REPLICAS, tuple(killed), counted)

    def _retry(self, cause: End) -> Decision:
        if self.retries >= JOB_RETRIES:
            return Decision(Action.FAIL, (cause,))
        self.retries += 1
        self.restarts.clear()
        note = (
            f"{cause.name} exited with status {cause.code}: retrying the whole job ({self.retries} "
            f"of {JOB_RETRIES})"
        )
        return Decision(Action.RETRY_JOB, (cause,), note)


#: Seconds between checks for faults and cancellation. Ends of replicas are reported at once.
_POLL_SECONDS: Final = 0.25
_STAMP_SECONDS: Final = 0.5
_TICK_SECONDS: Final = 2.0
#: Seconds to wait for further ends after a failure: a killed replica makes other replicas fail, and
#: processes end in random order.
_SETTLE_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Member:
    """One replica: its name, folders and log, and a function that prepares its process."""

    name: str
    folders: Folders
    log: JobLog
    launch: Callable[[], Launch]

    def clear(self) -> None:
        """Delete the replica's files; only buckets persist across a restart."""
        self.remove_root()
        for folder in (self.folders.work, self.folders.tmp):
            delete_folder(folder)
            folder.mkdir(parents=True)

    def remove_root(self) -> None:
        """Delete the replica's root folder with all files that the program wrote there."""
        delete_folder(self.folders.work.with_name("root"))


@dataclass
class Gang:
    """All replicas of a job; the first member is the primary replica."""

    members: Sequence[Member]
    life: LifeCycle
    faults: JobFaults
    account: str
    """Service account of the programs; empty for Google's service agent."""
    began: Callable[[], bool]
    """Called when all replicas can start; returns False if the job was cancelled."""
    paused: Callable[[], object]
    """Called before a retry of the whole job."""
    tick: Callable[[], None]
    """Called every other second and after each attempt."""
    notes: Path
    """Folder of process records, which the next server reads."""
    cancelled: threading.Event
    timeout_seconds: float
    """Maximum time in RUNNING, in all attempts together."""
    _ran: float = 0.0

    def run(self) -> Decision:
        """Run until the job ends; return the decision, which has no ``ends`` after a timeout.

        Raises JobCancelledError, and errors of ``Member.launch``.
        """
        while True:
            decision = self._attempt()
            if decision.action in (Action.SUCCEED, Action.FAIL):
                return decision
            if decision.action is Action.RETRY_JOB:
                self.paused()
            for member in self.members:
                member.clear()

    def _attempt(self) -> Decision:
        launches = [member.launch() for member in self.members]
        if self.cancelled.is_set() or not self.began():
            raise JobCancelledError
        attempt = _Attempt(self)
        try:
            for member, launch in zip(self.members, launches, strict=True):
                attempt.start(member, launch)
            decision = self._watch(attempt)
            if decision.note:  # logged before all replicas end, which may take seconds
                self.members[0].log.append(decision.note)
            return decision
        finally:
            attempt.end()
            self._ran += attempt.ran_seconds
            for member in self.members:
                member.log.stamp()
                member.remove_root()
            self.tick()

    def _watch(self, attempt: _Attempt) -> Decision:
        ticked = stamped = time.monotonic()
        names = [member.name for member in self.members]
        while True:
            first = attempt.next_end(_POLL_SECONDS)
            if self.cancelled.is_set():
                raise JobCancelledError
            if self._ran + attempt.ran_seconds > self.timeout_seconds:
                return Decision(Action.FAIL)
            if lost := self.faults.preempted(names, attempt.ran_seconds):
                return self.life.preempt(lost)
            if first and (decision := self._decide(attempt, first)):
                return decision
            now = time.monotonic()
            if now - stamped > _STAMP_SECONDS:
                stamped = now
                for member in self.members:
                    member.log.stamp()
            if now - ticked > _TICK_SECONDS:
                ticked = now
                self.tick()

    def _decide(self, attempt: _Attempt, first: End) -> Decision | None:
        ends = self._ends(attempt, first)
        decision = self.life.decide(ends)
        if len(self.members) > 1:
            for end in ends:
                self._member(end.name).log.append(f"{end.name} exited with status {end.code}")
        if decision.action is Action.RESTART_REPLICAS:
            self.members[0].log.append(decision.note)
            for end in decision.ends:
                member = self._member(end.name)
                member.clear()
                attempt.start(member, member.launch())
            return None
        return None if decision.action is Action.CONTINUE else decision

    def _ends(self, attempt: _Attempt, first: End) -> list[End]:
        """Return the first end; after a failure, also ends that it caused within a second."""
        exits = [first]
        until = time.monotonic() + _SETTLE_SECONDS
        while (
            len(self.members) > 1
            and all(end.code and end.code not in _KILLED for end in exits)
            and (left := until - time.monotonic()) > 0
        ):
            if end := attempt.next_end(left):
                exits.append(end)
        return exits

    def _member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)


@dataclass
class _Attempt:
    gang: Gang
    _started: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _ends: SimpleQueue[End | BaseException] = field(
        default_factory=SimpleQueue[End | BaseException]
    )
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    @property
    def ran_seconds(self) -> float:
        return time.monotonic() - self._started

    def start(self, member: Member, launch: Launch) -> None:
        thread = make_thread(self._wait, member, launch)
        self._threads.append(thread)
        thread.start()

    def next_end(self, seconds: float) -> End | None:
        try:
            end = self._ends.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(end, BaseException):
            raise end
        return end

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _wait(self, member: Member, launch: Launch) -> None:
        try:
            outcome = replica.run(
                launch,
                cwd=member.folders.work,
                log=member.log,
                notes=self.gang.notes,
                cancelled=self._stop,
                killed=partial(self.gang.faults.killed, member.name),
                account=self.gang.account,
            )
            if outcome.ending is replica.Ending.EXITED:
                self._ends.put(End(member.name, outcome.code))
        except CommandNotFoundError as error:
            self._ends.put(CommandNotFoundError(str(error), member.name))
        except BaseException as error:  # the calling thread raises the error
            self._ends.put(error)
