"""Starts, watches and ends all replicas of a job together.

Each replica has a thread that waits for its process. The calling thread alone decides: it hears of
ends, faults, the timeout and the user's cancel, and asks ``LifeCycle`` what follows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from localgcp.errors import CommandNotFoundError, JobCancelledError
from localgcp.runner import replica
from localgcp.runner.environment import Folders
from localgcp.runner.gang.life_cycle import Action, Decision, End, Grade, LifeCycle, grade
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import Launch
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder

#: Seconds between checks for faults and cancellation. Ends of replicas are reported at once.
_POLL_SECONDS: Final = 0.25
_STAMP_SECONDS: Final = 0.5
_TICK_SECONDS: Final = 2.0
#: Seconds to wait for further ends after a failure. A killed replica makes other replicas fail a
#: moment later, and the order in which processes end is random.
_SETTLE_SECONDS: Final = 1.0


class GangJob(Protocol):
    """The job whose replicas a gang runs (``localgcp.runner.job.JobRun``)."""

    def began(self) -> bool: ...
    def paused(self) -> None: ...
    def preempted(self, ran_seconds: float) -> Sequence[str]: ...
    def killed(self, name: str, ran_seconds: float) -> bool: ...
    def tick(self) -> None: ...


@dataclass(frozen=True)
class Member:
    """One replica: its name, folders and log, and a function that prepares its process."""

    name: str
    folders: Folders
    log: JobLog
    launch: Callable[[], Launch]
    account: str = ""
    """Service account of the program; empty for Google's service agent."""

    def clear(self) -> None:
        """Delete the replica's files; only buckets survive a restart."""
        self.remove_root()
        for folder in (self.folders.work, self.folders.tmp):
            delete_folder(folder)
            folder.mkdir(parents=True)

    def remove_root(self) -> None:
        """Delete the replica's root folder with all files that it wrote there."""
        delete_folder(self.folders.work.with_name("root"))


@dataclass
class Gang:
    """All replicas of a job; the first member is the primary replica."""

    members: Sequence[Member]
    life: LifeCycle
    job: GangJob
    notes: Path
    """Folder of process records, which the next server reads."""
    cancelled: threading.Event
    timeout_seconds: float
    """Maximum time in RUNNING, in all attempts together."""
    _ran: float = 0.0

    def run(self) -> Decision:
        """Run until the job succeeds or fails; return the decision, which names no replica for a
        timeout.

        Raises JobCancelledError, and what making a replica ready raises.
        """
        while True:
            decision = self._attempt()
            if decision.action in (Action.SUCCEED, Action.FAIL):
                return decision
            if decision.action is Action.RETRY_JOB:
                self.job.paused()
            for member in self.members:
                member.clear()

    def _attempt(self) -> Decision:
        launches = [member.launch() for member in self.members]
        if self.cancelled.is_set() or not self.job.began():
            raise JobCancelledError
        attempt = _Attempt(self.job, self.notes)
        try:
            for member, launch in zip(self.members, launches, strict=True):
                attempt.start(member, launch)
            decision = self._watch(attempt)
            if decision.note:  # before the others are ended, which may take seconds
                self.members[0].log.append(decision.note)
            return decision
        finally:
            attempt.end()
            self._ran += attempt.ran_seconds
            for member in self.members:
                member.log.stamp()
                member.remove_root()
            self.job.tick()

    def _watch(self, attempt: _Attempt) -> Decision:
        ticked = stamped = time.monotonic()
        while True:
            first = attempt.next_end(_POLL_SECONDS)
            if self.cancelled.is_set():
                raise JobCancelledError
            if self._ran + attempt.ran_seconds > self.timeout_seconds:
                return Decision(Action.FAIL)  # of no replica
            if lost := self.job.preempted(attempt.ran_seconds):
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
                self.job.tick()

    def _decide(self, attempt: _Attempt, first: End) -> Decision | None:
        """Return the decision that ends this attempt; None if the attempt continues."""
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
        """Return the first end; for a failure, also the ends shortly after it, as a failure can
        spread.
        """
        exits = [first]
        until = time.monotonic() + _SETTLE_SECONDS
        while (
            len(self.members) > 1
            and all(end.code and grade(end.code) is not Grade.KILLED for end in exits)
            and (left := until - time.monotonic()) > 0
        ):
            if end := attempt.next_end(left):
                exits.append(end)
        return exits

    def _member(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)


@dataclass
class _Attempt:
    """The processes of one attempt, and the threads that wait for them."""

    job: GangJob
    notes: Path
    _started: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _ends: SimpleQueue[End | BaseException] = field(
        default_factory=SimpleQueue[End | BaseException]
    )
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    @property
    def ran_seconds(self) -> float:
        """Seconds since the start of the first replica."""
        return time.monotonic() - self._started

    def start(self, member: Member, launch: Launch) -> None:
        """Start a replica's process, and a thread that waits for its end."""
        thread = make_thread(self._wait, member, launch)
        self._threads.append(thread)
        thread.start()

    def next_end(self, seconds: float) -> End | None:
        """Return the next end within a time, or None. Raises an error of a replica's start."""
        try:
            end = self._ends.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(end, BaseException):
            raise end
        return end

    def end(self) -> None:
        """End all processes, and return when all have ended."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _wait(self, member: Member, launch: Launch) -> None:
        try:
            outcome = replica.run(
                launch.argv,
                env=launch.env,
                umask=launch.umask,
                terminate=launch.terminate,
                cwd=member.folders.work,
                log=member.log,
                notes=self.notes,
                cancelled=self._stop,
                killed=partial(self.job.killed, member.name),
                account=member.account,
                descriptors=launch.descriptors,
            )
            if outcome.ending is replica.Ending.EXITED:
                self._ends.put(End(member.name, outcome.code))
        except CommandNotFoundError as error:
            self._ends.put(CommandNotFoundError(str(error), member.name))
        except BaseException as error:  # the calling thread decides about it
            self._ends.put(error)
