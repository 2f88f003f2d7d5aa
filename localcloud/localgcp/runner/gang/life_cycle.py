"""Decides after the end of replicas about restarts and retries, as Google documents (pure).

Sources: doc:training/understanding-training-service (copy of 2026-08-22), and
doc:training/use-spot-vms.

====================================  =====================================================
what ended a replica                  what follows
====================================  =====================================================
the primary one exits with 0          the job has succeeded; all others are ended
another exits with 0                  it is done; the others go on
exit 6, 134 (SIGABRT), 11, 139        maybe transient: the whole job again, up to 3 times
(SIGSEGV)
any other exit code                   an error of the code, which is permanent: the job failed
killed from outside (SIGKILL,         not permanent: that replica again in the same place, up to
SIGTERM)                              5 times each; then the whole job again, up to 3 times
preempted (SPOT)                      the whole job again, up to 6 times
====================================  =====================================================

``restartJobOnWorkerRestart`` restarts all replicas where else one is; ``disableRetries`` makes the
first time the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

WORKER_RESTARTS: Final = 5
JOB_RETRIES: Final = 3
PREEMPTIONS: Final = 6

_TRANSIENT: Final = frozenset({6, 134, 11, 139})
#: 128 + SIGKILL and SIGTERM: code does not cause these exit codes by mistake.
_KILLED: Final = frozenset({137, 143})


class Grade(Enum):
    """Kinds of failures, by exit code."""

    PERMANENT = "permanent"
    TRANSIENT = "transient"
    KILLED = "killed"


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
    """Log line: what happened, and how often it may happen."""
    stockout: bool = False
    """True if the job fails because no machines are left."""


def grade(code: int) -> Grade:
    """Return the kind of failure of an exit code other than 0."""
    if code in _TRANSIENT:
        return Grade.TRANSIENT
    return Grade.KILLED if code in _KILLED else Grade.PERMANENT


@dataclass
class LifeCycle:
    """Counts restarts and retries of one job."""

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
        """Decide after these replicas were preempted; FAIL ends the job with a stock-out."""
        self.preemptions += 1
        ends = tuple(End(name, 143) for name in names)
        lost = (
            f"{names[0]} lost its machine"
            if len(names) == 1
            else ("all replicas lost their machines")
        )
        note = f"preempted: {lost} ({self.preemptions} of {PREEMPTIONS})"
        if self.disable_retries or self.preemptions > PREEMPTIONS:
            return Decision(Action.FAIL, ends, f"preempted: {lost}", stockout=True)
        return Decision(Action.RETRY_JOB, ends, note)

    def decide(self, ends: Sequence[End]) -> Decision:
        """Decide after replicas that ended at about the same time.

        One that was killed comes first among several: the others mostly fail because of it.
        """
        failed = [end for end in ends if end.code]
        if any(end.name == self.primary and not end.code for end in ends):
            return Decision(Action.SUCCEED)
        if not failed:
            return Decision(Action.CONTINUE)
        killed = [end for end in failed if grade(end.code) is Grade.KILLED]
        transient = [end for end in failed if grade(end.code) is Grade.TRANSIENT]
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
