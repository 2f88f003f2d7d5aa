"""Cancels a job whose accelerators were idle for the time in its ``idleStop``.

A cancellation requires proof: for each accelerator of each replica, the service has points that
cover the whole time, all below the threshold. If points are missing, late, invalid or unreadable,
the job continues. Points and the current time come from the service, not from this machine.

The reason is written to the job's record before the cancellation, under a precondition. So a job
that leaves its stack meanwhile is not cancelled, and later commands can read the reason. Only a
higher ``run`` submits a cancelled job again.
"""

import contextlib
import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from vertex_training.customjob.protocol import ports
from vertex_training.errors import OperatorError, PreconditionFailedError
from vertex_training.settings.alerts import idle_rule

#: Seconds between two data points of the metric, and delay of a data point:
#: https://docs.cloud.google.com/monitoring/api/metrics_gcp_i_o#gcp-ml
SAMPLE: Final = 60.0
LATE: Final = 240.0
#: Maximum seconds between two data points without a gap.
GAP: Final = 1.5 * SAMPLE
#: Maximum error of a clock in seconds.
SKEW: Final = 60.0
NOT_KNOWN: Final = "idleStop cannot check the job; the job continues"


@dataclass(frozen=True, slots=True)
class Series:
    """Utilization over time of one accelerator of a replica, or of all its accelerators."""

    replica: str
    accelerator: str
    """Accelerator of the series; empty for a series of the whole replica."""
    points: Sequence[tuple[float, float]]
    """Pairs of time (seconds since 1970) and utilization (0 to 1), in any order."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Utilization of a job's accelerators, as the service reports it."""

    now: float
    """The service's time of the response."""
    series: Sequence[Series]


class IdleFinding(Enum):
    """Conclusion from a reading of the utilization."""

    IDLE = auto()
    BUSY = auto()
    YOUNG = auto()
    """The job has not run long enough."""
    UNPROVEN = auto()


@dataclass(frozen=True, slots=True)
class IdleVerdict:
    """A finding and its reason as text."""

    finding: IdleFinding
    why: str

    @property
    def goes_on(self) -> str:
        """Return the log line for a job that continues without a proof of idleness."""
        return f"{NOT_KNOWN}: {self.why}"


@dataclass(frozen=True, slots=True)
class IdleRule:
    """The ``idleStop`` of a job as text, like in the stack file."""

    text: str

    @property
    def below(self) -> float:
        """Return the utilization below which an accelerator is idle, from 0 to 1."""
        return idle_rule(self.text)[0] / 100

    @property
    def seconds(self) -> float:
        """Return how long the accelerators must be idle, in seconds."""
        return idle_rule(self.text)[1] * 60.0

    def judge(self, job: ports.JobSnapshot, reading: Reading) -> IdleVerdict:
        """Return whether a reading proves that a running job is idle."""
        until = reading.now - LATE
        since = until - self.seconds
        if not job.accelerators:
            return IdleVerdict(IdleFinding.UNPROVEN, "the job has no accelerators")
        recent = [
            dataclasses.replace(series, points=points)
            for series in reading.series
            if (points := sorted(at for at in series.points if at[0] >= since - SAMPLE))
        ]
        for series in recent:
            for time, value in series.points:
                if not (math.isfinite(value) and value >= 0 and time <= reading.now + SKEW):
                    what = f"invalid utilization value of {series.replica}"
                    return IdleVerdict(IdleFinding.UNPROVEN, what)
                if value >= self.below and time > since:
                    return IdleVerdict(IdleFinding.BUSY, f"{series.replica} is busy")
        for replica, count in job.accelerators:
            readings = [series for series in recent if series.replica == replica]
            shared = [
                value for series in readings if not series.accelerator for _, value in series.points
            ]
            if count > 1 and any(value * count >= self.below for value in shared):
                # The points are means: a single accelerator may be busy.
                what = f"one of the {count} accelerators of {replica} may be busy"
                return IdleVerdict(IdleFinding.UNPROVEN, what)
            if missing := _missing(readings, count, since, until):
                if not job.started or job.started / 1e9 > since - LATE:
                    return IdleVerdict(IdleFinding.YOUNG, "the job has not run long enough")
                return IdleVerdict(IdleFinding.UNPROVEN, f"{missing} of {replica}")
        percent, minutes = idle_rule(self.text)
        return IdleVerdict(
            IdleFinding.IDLE, f"no accelerator was at {percent}% or above for {minutes}m"
        )


def _missing(readings: Sequence[Series], count: int, since: float, until: float) -> str:
    """Return which data of a replica is missing; empty if the data is complete."""
    if not readings:
        return "no utilization data"
    accelerators = {series.accelerator for series in readings}
    if accelerators != {""} and _distinct_accelerators(accelerators) < count:
        return f"incomplete utilization data for {count} accelerators"
    for series in readings:
        times = [time for time, _ in series.points]
        if times[0] > since + SAMPLE or times[-1] < until - SAMPLE:
            return "incomplete utilization data"
        if any(later - earlier > GAP for earlier, later in pairwise(times)):
            return "gaps in the utilization data"
    return ""


def _distinct_accelerators(names: Iterable[str]) -> int:
    """Return how many accelerators the undocumented label of ``names`` distinguishes."""
    values = defaultdict[str, set[str]](set)
    for name in names:
        for label in filter(None, name.split(",")):
            values[label.partition("=")[0]].add(label)
    return max(map(len, values.values()), default=0)


class NotCancelledError(OperatorError):
    """The cancellation of an idle job failed."""


def goes_on(error: OperatorError) -> str:
    """Return the log line for a job that continues after this error of :class:`IdleStop`."""
    return str(error) if isinstance(error, NotCancelledError) else f"{NOT_KNOWN}: {error}"


@dataclass(frozen=True, slots=True)
class IdleStop:
    """The ``idleStop`` of a deployed job, with access to job, records and utilization."""

    rule: IdleRule
    jobs: ports.JobService
    intents: ports.IntentStore
    read: Callable[[str, float], Reading]
    """Read the accelerator utilization of a job, by name, for the last seconds. Raises
    OperatorError."""

    def look(self, job: ports.JobSnapshot) -> IdleVerdict:
        """Return the verdict on the job, without cancelling the job. Raises OperatorError."""
        if job.state != ports.RUNNING or not job.accelerators:
            return IdleVerdict(IdleFinding.YOUNG, "the job is not running")
        return self.rule.judge(job, self.read(job.name, self.rule.seconds + LATE + SAMPLE))

    def stop(self, job: ports.JobSnapshot, verdict: IdleVerdict) -> str:
        """Cancel a provably idle job and return the reason; return empty text if not cancelled.

        Repeated and concurrent calls are safe.

        Raises:
            NotCancelledError: the service refused the cancellation.
            OperatorError: the record or the job cannot be read or written.
        """
        stored = record_of(job.name, job.request_id, self.intents)
        if stored is not None and verdict.finding is IdleFinding.BUSY:
            self._forget(stored)
        if verdict.finding is not IdleFinding.IDLE or stored is None:
            return ""
        now = self.jobs.get(job.name)
        if now is None or now.state != ports.RUNNING:
            return ""
        reason = f"{verdict.why} (idleStop)"
        try:
            record = dataclasses.replace(stored.record, stopped=reason)
            stored = self.intents.write(record, stored.generation)
        except PreconditionFailedError:
            return ""  # another process changed the record: the next call checks again
        try:
            self.jobs.cancel(job.name)
        except OperatorError as error:
            self._forget(stored)
            raise NotCancelledError(
                f"{verdict.why}, but the cancellation failed and the job continues: {error}"
            ) from None
        return reason

    def _forget(self, stored: ports.StoredIntent) -> None:
        if stored.record.stopped:
            record = dataclasses.replace(stored.record, stopped="")
            with contextlib.suppress(PreconditionFailedError, OperatorError):
                self.intents.write(record, stored.generation)

    def reason(self, job: ports.JobSnapshot) -> str:
        """Return why ``idleStop`` cancelled the job; empty if it did not. Raises OperatorError."""
        return reason_of(job.name, job.request_id, self.intents)


def reason_of(name: str, request_id: str, intents: ports.IntentStore) -> str:
    """Return why ``idleStop`` cancelled the job; empty if it did not. Raises OperatorError."""
    stored = record_of(name, request_id, intents)
    return stored.record.stopped if stored else ""


def record_of(name: str, request_id: str, intents: ports.IntentStore) -> ports.StoredIntent | None:
    """Return the job's intent record; None if the record is released or names another job."""
    stored = intents.read(request_id) if request_id else None
    if stored is None or stored.record.state is not ports.IntentState.DONE:
        return None
    return stored if stored.record.job_name == name else None
