"""Cancel a job whose accelerators did nothing for as long as its ``idleStop`` says.

Only a proof cancels: of each accelerator of each replica the service has points that cover the
whole span, none of them at the threshold or above. Whatever is missing, late, odd or not read
leaves the job alone. Points, and the time that they are judged at, are the service's: the clock of
this process decides nothing.

The reason is written into the job's record before the cancellation, under a precondition. So a job
that leaves its stack meanwhile is not touched, and who asks later what became of the job reads it
there. Nothing submits a cancelled job again but a higher ``run``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from vertex_training.customjob.protocol.ports import (
    RUNNING,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
    StoredIntent,
)
from vertex_training.errors import OperatorError, PreconditionFailedError
from vertex_training.settings.alerts import idle_rule

#: Seconds between two points, and until a point is there:
#: https://docs.cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml
SAMPLE: Final = 60.0
LATE: Final = 240.0
#: Between two points, at most: none is missing.
GAP: Final = 1.5 * SAMPLE
#: How much a clock may be off.
SKEW: Final = 60.0
NOT_KNOWN: Final = "whether it is idle is not known, and it goes on"


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one accelerator of a replica, or of all of them together."""

    replica: str
    accelerator: str
    """Accelerator of the series; empty if the series is about the whole replica."""
    points: Sequence[tuple[float, float]]
    """Seconds since 1970, and use from 0 to 1, in any order."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Times, replicas and utilization series of a job, as the service returns them."""

    now: float
    """Its own time when it answered."""
    series: Sequence[Series]


class IdleFinding(Enum):
    """Conclusion from one reading."""

    IDLE = auto()
    BUSY = auto()
    YOUNG = auto()
    """The job has not run for so long."""
    UNPROVEN = auto()


@dataclass(frozen=True, slots=True)
class IdleVerdict:
    """A finding, with why, in words."""

    finding: IdleFinding
    why: str

    @property
    def goes_on(self) -> str:
        """Return the line about a job that goes on because nothing is proved."""
        return f"{NOT_KNOWN}: {self.why}"


@dataclass(frozen=True, slots=True)
class IdleRule:
    """``idleStop`` of a job."""

    text: str

    @property
    def below(self) -> float:
        """The threshold, from 0 to 1."""
        return idle_rule(self.text)[0] / 100

    @property
    def seconds(self) -> float:
        """For how long."""
        return idle_rule(self.text)[1] * 60.0

    def judge(self, job: JobSnapshot, reading: Reading) -> IdleVerdict:
        """Return the conclusion about a running job."""
        until = reading.now - LATE
        since = until - self.seconds
        if not job.accelerators:
            return IdleVerdict(IdleFinding.UNPROVEN, "it has no accelerators")
        recent = [
            dataclasses.replace(series, points=points)
            for series in reading.series
            if (points := sorted(at for at in series.points if at[0] >= since - SAMPLE))
        ]
        for each in recent:
            for time, value in each.points:
                if not (math.isfinite(value) and value >= 0 and time <= reading.now + SKEW):
                    return IdleVerdict(IdleFinding.UNPROVEN, f"an odd point of {each.replica}")
                if value >= self.below and time > since:
                    return IdleVerdict(IdleFinding.BUSY, f"{each.replica} works")
        for replica, count in job.accelerators:
            readings = [each for each in recent if each.replica == replica]
            shared = [
                value for each in readings if not each.accelerator for _, value in each.points
            ]
            if count > 1 and any(value * count >= self.below for value in shared):
                # Their mean: one may do all of it.
                return IdleVerdict(
                    IdleFinding.UNPROVEN, f"one of the {count} of {replica} may work"
                )
            if missing := _missing(readings, count, since, until):
                if not job.started or job.started / 1e9 > since - LATE:
                    return IdleVerdict(IdleFinding.YOUNG, "it has not run for so long")
                return IdleVerdict(IdleFinding.UNPROVEN, f"{missing} of {replica}")
        percent, minutes = idle_rule(self.text)
        return IdleVerdict(
            IdleFinding.IDLE, f"no accelerator was at {percent}% or above for {minutes}m"
        )


def _missing(readings: Sequence[Series], count: int, since: float, until: float) -> str:
    """Return the missing proof for a replica with ``count`` accelerators, or empty."""
    if not readings:
        return "no points"
    named = {each.accelerator for each in readings}
    if named != {""} and _told_apart(named) < count:
        return f"no points of all {count} accelerators"
    for each in readings:
        times = [time for time, _ in each.points]
        if times[0] > since + SAMPLE or times[-1] < until - SAMPLE:
            return "points that do not cover the span"
        if any(later - earlier > GAP for earlier, later in pairwise(times)):
            return "points with a gap"
    return ""


def _told_apart(named: Iterable[str]) -> int:
    """Return the number of accelerators that one label (undocumented) distinguishes."""
    values = defaultdict[str, set[str]](set)
    for each in named:
        for label in filter(None, each.split(",")):
            values[label.partition("=")[0]].add(label)
    return max(map(len, values.values()), default=0)


class NotCancelledError(OperatorError):
    """A job is proven to be idle, and goes on."""


def goes_on(error: OperatorError) -> str:
    """Return the line about a job that goes on after this error of :class:`IdleStop`."""
    return str(error) if isinstance(error, NotCancelledError) else f"{NOT_KNOWN}: {error}"


@dataclass(frozen=True, slots=True)
class IdleStop:
    """The rule of a deployed job, and what it takes to keep it."""

    rule: IdleRule
    jobs: JobService
    intents: IntentStore
    read: Callable[[str, float], Reading]
    """Use of the accelerators of the job of this name, of so many last seconds. Raises
    OperatorError."""

    def look(self, job: JobSnapshot) -> IdleVerdict:
        """Return the current conclusion; does not cancel the job.

        Raises:
            OperatorError: nothing can be read.
        """
        if job.state != RUNNING or not job.accelerators:
            return IdleVerdict(IdleFinding.YOUNG, "it does not run")
        return self.rule.judge(job, self.read(job.name, self.rule.seconds + LATE + SAMPLE))

    def stop(self, job: JobSnapshot, verdict: IdleVerdict) -> str:
        """Cancel a job that is proven to be idle; the reason, or empty if it is not to be touched.

        To call this again is safe, also beside another process.

        Raises:
            NotCancelledError: the service did not take the cancellation.
            OperatorError: the record or the job cannot be read or written.
        """
        stored = record_of(job.name, job.request_id, self.intents)
        if stored is not None and verdict.finding is IdleFinding.BUSY:
            self._forget(stored)
        if verdict.finding is not IdleFinding.IDLE or stored is None:
            return ""
        now = self.jobs.get(job.name)
        if now is None or now.state != RUNNING:
            return ""
        reason = f"{verdict.why} (idleStop)"
        try:
            record = dataclasses.replace(stored.record, stopped=reason)
            stored = self.intents.write(record, stored.generation)
        except PreconditionFailedError:
            return ""  # somebody else acts on the job: the next look tells
        try:
            self.jobs.cancel(job.name)
        except OperatorError as error:
            self._forget(stored)
            raise NotCancelledError(
                f"{verdict.why}, and it goes on: it could not be cancelled: {error}"
            ) from None
        return reason

    def _forget(self, stored: StoredIntent) -> None:
        """Take the reason back: the job goes on, and who cancels it later has another one."""
        if stored.record.stopped:
            record = dataclasses.replace(stored.record, stopped="")
            with contextlib.suppress(PreconditionFailedError, OperatorError):
                self.intents.write(record, stored.generation)

    def reason(self, job: JobSnapshot) -> str:
        """Return the reason for the cancellation; empty if not by this. Raises OperatorError."""
        return reason_of(job.name, job.request_id, self.intents)


def reason_of(name: str, request_id: str, intents: IntentStore) -> str:
    """Return ``idleStop``'s reason for a cancellation, or empty. Raises OperatorError."""
    stored = record_of(name, request_id, intents)
    return stored.record.stopped if stored else ""


def record_of(name: str, request_id: str, intents: IntentStore) -> StoredIntent | None:
    """The record of a job that is in its stack; None if it names another job, or is released.

    Raises:
        OperatorError: it cannot be read.
    """
    stored = intents.read(request_id) if request_id else None
    if stored is None or stored.record.state is not IntentState.DONE:
        return None
    return stored if stored.record.job_name == name else None
