"""Vertex AI and Cloud Storage in their worst behavior for a submission, on virtual time.

Requests take effect late, lists show an old index, answers get lost. What the protocol assumes of
the cloud holds here exactly: a request takes effect within ``DEADLINE`` after it was sent or never,
and a list is at most ``LAG`` behind. ``violations`` collects what must never happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from vertex_training.customjob.google.job_service import CREATE_TIMEOUT
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, JobKind
from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    DIGEST_LABEL,
    FAILED,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    TERMINAL,
    TURN_LABEL,
    IntentRecord,
    IntentState,
    JobSnapshot,
    StoredIntent,
    TurnRecord,
)
from vertex_training.errors import PreconditionFailedError

DEADLINE: Final = CREATE_TIMEOUT
#: Seconds; below the 35 s the protocol looks after a lease (``Timing.settle``).
LAG: Final = 30.0


@dataclass
class Job:
    """An effective job. ``history`` is what an index returns with delay; None means deleted."""

    record: JobSnapshot
    request_id: str
    of: str
    """Which job of the stack it is."""
    history: list[tuple[float, JobSnapshot | None]]
    ends_at: float | None = None
    """When a cancellation is carried out."""
    passed: bool = False
    """Whether another request of the same job had the turn since."""

    @property
    def repeatable(self) -> bool:
        """Whether the request may be sent again: it failed, and another request had the turn."""
        return self.passed and self.record.state in FAILED

    @property
    def exists(self) -> bool:
        """Whether the job's record is not deleted."""
        return self.history[-1][1] is not None

    @property
    def live(self) -> bool:
        """Whether the job runs or will run, and costs money."""
        return self.exists and self.record.state not in TERMINAL

    @property
    def going_on(self) -> bool:
        """Whether the job is active and was not cancelled."""
        return self.live and self.record.state != CANCELLING


@dataclass
class Send:
    """One request in progress: ``lands_at`` is its effective time, None if it never takes
    effect.
    """

    request_id: str
    labels: Mapping[str, str]
    entered: float
    lands_at: float | None = None
    settled: bool = False
    """It took effect, or it was proven that it never will."""


@dataclass
class Cloud:
    """The parts that survive every process: jobs, records, the time."""

    time: float = 1000.0
    jobs: list[Job] = field(default_factory=list)
    records: dict[str, StoredIntent] = field(default_factory=dict)
    turns: dict[str, TurnRecord] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    kind: JobKind = CUSTOM_JOB
    """The kind of all its jobs."""

    @property
    def is_named(self) -> bool:
        """Return whether a job has the name from its request: sent twice, it is still one job."""
        return self.kind is BATCH_JOB

    # --- time
    def advance(self, to: float) -> None:
        """Advance the time; due events happen at their own time."""
        while due := [*self._due(to)]:
            moment, what = min(due, key=lambda one: one[0])
            self.time = max(self.time, moment)
            if isinstance(what, Send):
                self.land(what)
            else:
                what.ends_at = None
                self.change(what, "JOB_STATE_CANCELLED")
        self.time = max(self.time, to)

    def _due(self, to: float):
        for send in self.sends:
            if not send.settled and send.lands_at is not None and send.lands_at <= to:
                yield send.lands_at, send
        for job in self.jobs:
            if job.ends_at is not None and job.ends_at <= to:
                yield job.ends_at, job

    # --- requests
    def enter(self, labels: Mapping[str, str]) -> Send:
        """Register a process that begins to send, and check that it may. It may not while an
        earlier request may still take effect, or while a job of an earlier request exists, unless
        that job failed and another request had the turn since; nor beside another request of the
        same job that may take effect or has an active job. If the service names jobs by their
        requests, the same request may be sent at any time.
        """
        labels = self.kind.labels_of(labels)
        request_id = labels[REQUEST_ID_LABEL]
        for other in self.sends:
            doubtful = not other.settled and self.time <= other.entered + DEADLINE
            if other.request_id == request_id:
                if doubtful and not self.is_named:
                    self.violations.append(f"{request_id} was sent again while in doubt")
            elif other.labels.get(JOB_LABEL) == labels.get(JOB_LABEL) and doubtful:
                if self.is_named and self.get(self._name_of(other)) is not None:
                    continue  # whenever it takes effect, its name is taken
                self.violations.append(f"{request_id} was sent beside {other} in doubt")
        for job in self.of(request_id):
            if not (job.repeatable or self.is_named):
                self.violations.append(f"{request_id} was sent again beside {job.record}")
        for job in self.going_on(labels.get(JOB_LABEL, "")):
            if self.is_named and job.request_id == request_id:
                continue
            self.violations.append(f"{request_id} was sent while {job} goes on")
        send = Send(request_id, labels, self.time)
        self.sends.append(send)
        return send

    def _name_of(self, send: Send) -> str:
        """Return the service's name for the job of a request."""
        turn = send.labels.get(TURN_LABEL, 1)
        id_ = f"{send.request_id}-t{turn}" if self.is_named else len(self.jobs) + 1
        return f"projects/1/locations/r/{self.kind.collection}/{id_}"

    def land(self, send: Send) -> Job:
        """Let the request take effect now."""
        send.settled = True
        name, number = self._name_of(send), len(self.jobs) + 1
        if self.get(name) is not None:
            return self.job(name)  # the name is taken
        if others := [job for job in self.of(send.request_id) if not job.repeatable]:
            self.violations.append(f"{send.request_id} took effect beside {others}")
        of = send.labels.get(JOB_LABEL, "")
        if others := self.going_on(of):
            self.violations.append(f"{send.request_id} took effect while {others} go on")
        record = JobSnapshot(
            name,
            "JOB_STATE_PENDING",
            int(self.time) * 1000 + number,
            send.labels[DIGEST_LABEL],
            turn=int(send.labels.get(TURN_LABEL, 1)),
            request_id=send.request_id,
        )
        job = Job(record, send.request_id, of, [(self.time, record)])
        self.jobs.append(job)
        return job

    # --- jobs
    def of(self, request_id: str) -> list[Job]:
        """Return the existing jobs of a request."""
        return [job for job in self.jobs if job.request_id == request_id and job.exists]

    def going_on(self, name: str) -> list[Job]:
        """Return active jobs and requests of a job of the stack, for any request."""
        return [job for job in self.jobs if job.of == name and job.going_on]

    def job(self, name: str) -> Job | None:
        """Return the last job of this name, including deleted jobs."""
        return next((job for job in reversed(self.jobs) if job.record.name == name), None)

    def change(self, job: Job, state: str) -> None:
        """Change the state of a job."""
        job.record = replace(job.record, state=state)
        job.history.append((self.time, job.record))

    def get(self, name: str) -> JobSnapshot | None:
        """Return a job by name, always up to date."""
        job = self.job(name)
        return job.record if job is not None and job.exists else None

    def find(self, request_id: str, lag: float) -> list[JobSnapshot]:
        """Return the index as of ``lag`` seconds ago: missing jobs, old states, deleted jobs."""
        seen = [
            [record for moment, record in job.history if moment <= self.time - lag][-1:]
            for job in self.jobs
            if job.request_id == request_id
        ]
        return [record for [record] in filter(None, seen) if record is not None]

    def cancel(self, name: str, takes: float) -> None:
        """Request a cancellation that takes effect ``takes`` seconds later."""
        job = self.job(name)
        if job is not None and job.live and job.ends_at is None:
            self.change(job, CANCELLING)
            job.ends_at = self.time + takes

    def delete(self, name: str) -> None:
        """Delete a job's record."""
        job = self.job(name)
        if job is not None and job.exists:
            job.history.append((self.time, None))
            if self.is_named:  # assumed: a request is not still on its way when its job is deleted
                for send in self.sends:
                    send.settled |= self._name_of(send) == name

    # --- records
    def write(self, record: IntentRecord, generation: int) -> StoredIntent:
        """Compare and swap, at the store's own time."""
        current = self.records.get(record.request_id)
        if (current.generation if current else 0) != generation:
            raise PreconditionFailedError
        if current is not None and current.record.state is IntentState.DONE:
            self._check_transition(current.record, record.state)
        stored = StoredIntent(record, generation + 1, self.time)
        self.records[record.request_id] = stored
        return stored

    def write_turn(
        self, key: str, request_id: str, number: int, generation: int, *, withdrawn: bool = False
    ) -> None:
        """Compare and swap. All other requests of this job have had their turn."""
        current = self.turns.get(key)
        if (current.generation if current else 0) != generation:
            raise PreconditionFailedError
        self.turns[key] = TurnRecord(request_id, generation + 1, number, withdrawn)
        for job in self.jobs:
            job.passed |= f"r/{job.of}" == key and job.request_id != request_id

    def _check_transition(self, done: IntentRecord, then: IntentState) -> None:
        """Check that a record with a job is freed only after the job has ended.

        It may be claimed once another request had the turn, if the job failed or was deleted.
        """
        job = self.job(done.job_name)
        if job is not None and job.passed and (job.repeatable or not job.exists):
            return
        if then not in (IntentState.DONE, IntentState.RELEASED):
            self.violations.append(f"{done} was overwritten by {then}")
        if then is IntentState.RELEASED and job is not None and job.live:
            self.violations.append(f"{done} was freed while its job is {job.record.state}")

    def state_of(self, request_id: str) -> IntentState | None:
        """Return the state in the intent record of a request."""
        stored = self.records.get(request_id)
        return stored.record.state if stored else None
