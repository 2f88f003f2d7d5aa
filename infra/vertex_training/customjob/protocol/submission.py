"""Submit one request as one job, whatever process dies in between: the protocol.

``CreateCustomJob`` has no idempotency key, and Vertex AI names the jobs. So a label carries the
identity of a submission, and a record in the control bucket, written only under a precondition,
decides which process may send. The steps, in the order of ``_Attempt.run``:

1. claim   write INTENT; take over a claim that was not sent; wait out a lease that may have been
2. look    adopt a job that carries the request id, or refuse
3. turn    no previous request of the job has a live job, or can still create one (``turn``);
           jobs that failed in an earlier turn of this request do not count in steps 1 and 2
4. fence   INTENT -> SENDING under a lease; a process that loses this write does not send
5. send    exactly once, no retry
6. settle  after a lost response look for the job, never send again
7. audit   of several jobs for one request keep the earliest
8. record  SENDING -> DONE with the job's name

A service that takes the job's name from the request (``SubmissionRequest.is_named``) makes one job
of a request however often it is sent. Then nobody waits out a lease of the same request: it is sent
again, and the record stays SENDING until one is there; and there is nothing to audit. Nobody looks
by label, either: the service's answer to the name tells a job of somebody else, a label does not.

It fails closed: without a certain answer nothing is sent, and the next run looks again. The one
assumption is that a request takes effect within ``Timing.lease`` after it was sent, or never.

Imports neither Pulumi nor Google: ``ports`` declares what it needs of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from vertex_training.customjob.protocol.adoption import deleted_job_error, earliest, job_to_adopt
from vertex_training.customjob.protocol.ports import (
    FAILED,
    TERMINAL,
    TURN_LABEL,
    IntentRecord,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
    ProcessEnvironment,
    StoredIntent,
    SubmissionRequest,
    Timing,
)
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import (
    InDoubtError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)

#: How often to start over because another process writes the same records.
MAX_ATTEMPTS: Final = 20


def submit(
    request: SubmissionRequest,
    jobs: JobService,
    intents: IntentStore,
    timing: Timing = Timing(),
    environment: ProcessEnvironment = ProcessEnvironment(),
) -> tuple[JobSnapshot, bool]:
    """The job of this request, and whether it was adopted rather than created now.

    Raises:
        JobRefusedError: the job of this run has failed or is another request; or a job of a
            previous request is live.
        NotSubmittedError: nothing was created, for certain; with the reason.
        InDoubtError: the response was lost, and no job appeared in time.
    """
    return _Attempt(request, jobs, intents, timing, environment).run()


class _Attempt:
    """One process's attempt at one submission."""

    def __init__(
        self,
        request: SubmissionRequest,
        jobs: JobService,
        intents: IntentStore,
        timing: Timing,
        environment: ProcessEnvironment,
    ) -> None:
        self.request, self.jobs, self.intents = request, jobs, intents
        self.timing, self.environment = timing, environment
        self.turn = SubmissionTurn(request, jobs, intents, timing, environment)
        self.owner = uuid.uuid4().hex

    def run(self) -> tuple[JobSnapshot, bool]:
        """Run the steps that the module's docstring lists."""
        for _ in range(MAX_ATTEMPTS):
            try:
                claim = self._claim()
                if isinstance(claim, JobSnapshot):
                    return self._ensure_no_other_request(claim), True
                if not self.request.is_named and (found := self._find_jobs()):
                    return self._ensure_no_other_request(self._adopt(found, claim)), True
                turn = self._acquire_turn(claim)
                in_flight = claim.record.state is IntentState.SENDING
                return self._send(*self._fence(claim), turn, in_flight=in_flight)
            except PreconditionFailedError:
                continue  # another process wrote a record: start over from what it wrote
        raise NotSubmittedError(
            f"{self.request.title} is being submitted by others as well; nothing was sent "
            "from here. Run `pulumi up` again."
        )

    def _claim(self) -> StoredIntent | JobSnapshot:
        """Step 1: an intent record of this attempt, or the job that makes it unnecessary."""
        stored = self.intents.read(self.request.request_id)
        if stored is None:
            return self._write(IntentState.INTENT, 0)
        if stored.record.state is IntentState.DONE:
            return self._recorded_job(stored)
        if stored.record.state is IntentState.SENDING:
            return stored if self.request.is_named else self._wait_out_lease(stored)
        withdrawn = self._withdrawn_job(stored.record)
        if withdrawn is not None and not self.turn.has_passed(withdrawn):
            return self._adopt([withdrawn], stored)
        return self._write(IntentState.INTENT, stored.generation)

    def _wait_out_lease(self, stored: StoredIntent) -> StoredIntent | JobSnapshot:
        """Wait until another process's request can no longer take effect, then claim its record.

        Raises:
            PreconditionFailedError: the record changed meanwhile.
        """
        settled_at = stored.updated + self.timing.lease + self.timing.settle
        while True:
            if found := self._find_jobs():
                return self._adopt(found, stored)
            current = self.intents.read(self.request.request_id)
            if current is None or current.generation != stored.generation:
                raise PreconditionFailedError
            if self.intents.now() >= settled_at:
                return self._write(IntentState.INTENT, stored.generation)
            self.environment.sleep(self.timing.interval)

    def _find_jobs(self, excluding: str = "") -> list[JobSnapshot]:
        """Step 2: the jobs that carry the request id, except the one with the name ``excluding``.

        Reads each by its name: a stale list holds deleted jobs and former states. Leaves out those
        that failed in an earlier turn.
        """
        found = self.jobs.find(self.request.parent, self.request.request_id)
        names = [job.name for job in found if job.name != excluding]
        jobs = [job for name in names if (job := self.jobs.get(name)) is not None]
        return [job for job in jobs if not self.turn.has_passed(job)]

    def _acquire_turn(self, claim: StoredIntent) -> int:
        """Step 3: the turn's number. Releases the claim if it is refused or cannot be read."""
        try:
            return self.turn.acquire()
        except OperatorError:
            if claim.record.state is not IntentState.SENDING:
                self._try_write(IntentState.RELEASED, claim)
            raise

    def _ensure_no_other_request(self, adopted: JobSnapshot) -> JobSnapshot:
        """The adopted job, once no later request of the same job can act.

        A job that has ended may have been followed by another request: an ``up`` submitted an
        edited file and was killed, then the file was put back.
        """
        if adopted.state in TERMINAL:
            self.turn.wait_out_previous_request()
        return adopted

    def _fence(self, claim: StoredIntent) -> tuple[StoredIntent, float]:
        """Step 4: the record that permits to send, and when the write began (monotonic)."""
        began = self.environment.monotonic()
        return self._write(IntentState.SENDING, claim.generation), began

    def _send(
        self, fence: StoredIntent, fenced_at: float, turn: int, *, in_flight: bool
    ) -> tuple[JobSnapshot, bool]:
        """Steps 5 to 8, in the process that won the fence.

        ``in_flight``: another process may have sent the same; then no refusal releases the record.
        """
        labels = {**self.request.labels, TURN_LABEL: str(turn)}
        try:
            job = self._create_when_permitted(fenced_at, labels)
        except NotSubmittedError:
            if not in_flight:
                self._try_write(IntentState.RELEASED, fence)
            raise
        except InDoubtError:
            if self.request.is_named:
                raise
            return self._adopt(self._wait_for_unconfirmed_job(), fence), True
        if not self.request.is_named:
            job = self._audit(job)
        self._try_write(IntentState.DONE, fence, job.name)
        return (job_to_adopt([job], self.request) if self.request.is_named else job), False

    def _create_when_permitted(self, fenced_at: float, labels: Mapping[str, str]) -> JobSnapshot:
        """Step 5. Retries only while permission is denied, and within ``Timing.gate``."""
        while True:
            if not self.environment.engine_is_alive():
                raise NotSubmittedError("the Pulumi engine is gone; nothing was sent.")
            if self.environment.monotonic() - fenced_at > self.timing.send_within:
                raise NotSubmittedError("this process was held up for too long; nothing was sent.")
            try:
                return self.jobs.create(self.request.parent, self.request.body, labels)
            except PermissionDeniedError:
                waited = self.environment.monotonic() - fenced_at
                if waited + self.timing.interval > self.timing.gate:
                    raise
                self.environment.sleep(self.timing.interval)
                if self._find_jobs():  # refused, yet a job exists: the response was wrong
                    raise InDoubtError("a job appeared although it was refused") from None

    def _wait_for_unconfirmed_job(self) -> list[JobSnapshot]:
        """Step 6: look for the job of a request whose response was lost."""
        waited = 0.0
        while not (result := self._find_jobs()):
            if waited >= self.timing.doubt:
                raise InDoubtError(
                    f"no answer to the submission of {self.request.title} (request id "
                    f"{self.request.request_id}), and nothing of it appeared within "
                    f"{self.timing.doubt:.0f} s. Nothing was sent twice. Run `pulumi up` again: "
                    "it looks for it first."
                )
            self.environment.sleep(self.timing.interval)
            waited += self.timing.interval
        return result

    def _adopt(self, jobs: Sequence[JobSnapshot], stored: StoredIntent) -> JobSnapshot:
        """Choose a job and record it."""
        job = job_to_adopt(jobs, self.request)
        self._try_write(IntentState.DONE, stored, job.name)
        return job

    def _recorded_job(self, stored: StoredIntent) -> StoredIntent | JobSnapshot:
        """The job a DONE record names, or a claim if another request had the turn since it failed.

        Otherwise never sends again, even if Vertex AI deleted the job.
        """
        name = stored.record.job_name
        job = self.jobs.get(name)
        if job is None and self.request.is_repeatable:
            return self._write(IntentState.INTENT, stored.generation)
        if self.turn.has_passed(job):
            return self._write(IntentState.INTENT, stored.generation)
        if job is None:
            raise deleted_job_error(name, self.request)
        return job_to_adopt([job], self.request)

    def _withdrawn_job(self, record: IntentRecord) -> JobSnapshot | None:
        """The job that a RELEASED record still names, if Vertex AI still has it.

        It may have been submitted a moment ago, and a stale list would not hold it.
        """
        released = record.state is IntentState.RELEASED and record.job_name
        return self.jobs.get(record.job_name) if released else None

    def _audit(self, created: JobSnapshot) -> JobSnapshot:
        """Step 7: if a request took effect after its lease, keep one job and cancel the others."""
        try:
            others = [job for job in self._find_jobs(created.name) if job.state not in FAILED]
            kept = earliest([*others, created])
            for job in (*others, created):
                if job.name != kept.name and job.state not in TERMINAL:
                    self.jobs.cancel(job.name)
        except OperatorError:
            return created  # the job exists; an error would make the engine forget it
        return kept

    def _write(self, state: IntentState, generation: int, job_name: str = "") -> StoredIntent:
        """Compare-and-swap. Recognises its own write, by the owner, if the response was lost."""
        record = IntentRecord(self.request.request_id, state, self.owner, job_name)
        try:
            return self.intents.write(record, generation)
        except PreconditionFailedError:
            current = self.intents.read(self.request.request_id)
            if current is not None and current.record == record:
                return current
            raise

    def _try_write(self, state: IntentState, stored: StoredIntent, job_name: str = "") -> None:
        """Record what is certain already. Ignores failure: the next run has to look once more.

        Raises nothing: the job exists, and an error would make the engine forget it.
        """
        try:
            self._write(state, stored.generation, job_name)
        except (PreconditionFailedError, OperatorError):
            return
