"""The submission protocol: submits a request as exactly one job, even if processes die.

``CreateCustomJob`` has no idempotency key, and Vertex AI chooses job names. So a label stores the
identity of a submission, and a record in the control bucket, written only under a precondition,
determines which process can send. The steps, in the order of ``_Attempt.run``:

1. claim   write INTENT; take over an unsent claim; wait until the lease of a sent claim expires
2. look    adopt a job with the request id, or refuse
3. turn    ensure that no previous request of the job has or can create a live job (``turn``);
           steps 1 and 2 ignore jobs that failed in an earlier turn of this request
4. fence   write SENDING under a lease; a process that loses this write does not send
5. send    send exactly once, without retries
6. settle  after a lost response look for the job, and never send again
7. audit   cancel all but the earliest of several jobs for one request
8. record  write DONE with the job's name

A request to Batch sets the job's name (``SubmissionRequest.is_named``), so Batch creates one job
even for repeated requests. Such a process does not wait for a lease, skips the steps look and
audit, and sends again. The record remains SENDING until the job exists.

Without a certain answer nothing is sent, and the next run looks again. The only assumption is that
a request takes effect within ``Timing.lease``, or never. Only ``ports`` declares interfaces.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    DIGEST_LABEL_LENGTH,
    FAILED,
    RECORD_DELETED,
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
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)

#: Maximum number of attempts while other processes write the same records.
MAX_ATTEMPTS: Final = 20


def submit(
    request: SubmissionRequest,
    jobs: JobService,
    intents: IntentStore,
    timing: Timing = Timing(),
    environment: ProcessEnvironment = ProcessEnvironment(),
) -> tuple[JobSnapshot, bool]:
    """Submit a request; return its job and True if the job was adopted instead of created.

    Raises:
        JobRefusedError: this run failed, or a job of a previous request is live.
        NotSubmittedError: no job was created.
        InDoubtError: the response was lost, and no job appeared in time.
    """
    return _Attempt(request, jobs, intents, timing, environment).run()


class _Attempt:
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
        for _ in range(MAX_ATTEMPTS):
            try:
                claim = self._claim()
                if isinstance(claim, JobSnapshot):
                    return self._ensure_no_other_request(claim), True
                if not self.request.is_named and (jobs := self._find_jobs()):
                    return self._ensure_no_other_request(self._adopt(jobs, claim)), True
                turn = self._acquire_turn(claim)
                in_flight = claim.record.state is IntentState.SENDING
                return self._send(*self._fence(claim), turn, in_flight=in_flight)
            except PreconditionFailedError:
                continue  # another process wrote a record: start over from this record
        raise NotSubmittedError(
            f"other processes are submitting {self.request.title}. This process submitted nothing. "
            "Run `pulumi up` again."
        )

    def _claim(self) -> StoredIntent | JobSnapshot:
        """Step 1: return an intent record that this attempt claimed, or an existing job."""
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
        """Wait until the request of another process cannot take effect; then claim its record."""
        settled_at = stored.updated + self.timing.lease + self.timing.settle
        while True:
            if jobs := self._find_jobs():
                return self._adopt(jobs, stored)
            current = self.intents.read(self.request.request_id)
            if current is None or current.generation != stored.generation:
                raise PreconditionFailedError
            if self.intents.now() >= settled_at:
                return self._write(IntentState.INTENT, stored.generation)
            self.environment.sleep(self.timing.interval)

    def _find_jobs(self, excluding: str = "") -> list[JobSnapshot]:
        """Step 2: return the jobs with the request id that did not fail in an earlier turn."""
        listed = self.jobs.find(self.request.parent, self.request.request_id)
        names = [job.name for job in listed if job.name != excluding]
        jobs = [job for name in names if (job := self.jobs.get(name)) is not None]
        return [job for job in jobs if not self.turn.has_passed(job)]

    def _acquire_turn(self, claim: StoredIntent) -> int:
        """Step 3: acquire the turn and return its number. On an error, release the claim."""
        try:
            return self.turn.acquire()
        except OperatorError:
            if claim.record.state is not IntentState.SENDING:
                self._try_write(IntentState.RELEASED, claim)
            raise

    def _ensure_no_other_request(self, adopted: JobSnapshot) -> JobSnapshot:
        """Return the job after every later request of the same job became inactive."""
        if adopted.state in TERMINAL:
            self.turn.wait_out_previous_request()
        return adopted

    def _fence(self, claim: StoredIntent) -> tuple[StoredIntent, float]:
        """Step 4: write the record that permits sending; return the record and the start time."""
        began = self.environment.monotonic()
        return self._write(IntentState.SENDING, claim.generation), began

    def _send(
        self, fence: StoredIntent, fenced_at: float, turn: int, *, in_flight: bool
    ) -> tuple[JobSnapshot, bool]:
        """Run steps 5 to 8, in the process that wrote the record of step 4.

        A refusal does not release a record whose request may be ``in_flight`` from another process.
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
        """Step 5: send. Retries only while a permission is missing, for ``Timing.gate``."""
        while True:
            if not self.environment.engine_is_alive():
                raise NotSubmittedError("the Pulumi engine has exited. Nothing was submitted.")
            if self.environment.monotonic() - fenced_at > self.timing.send_within:
                raise NotSubmittedError(
                    "this process was delayed for too long. Nothing was submitted."
                )
            try:
                return self.jobs.create(self.request.parent, self.request.body, labels)
            except PermissionDeniedError:
                waited = self.environment.monotonic() - fenced_at
                if waited + self.timing.interval > self.timing.gate:
                    raise
                self.environment.sleep(self.timing.interval)
                if self._find_jobs():  # refused, yet a job exists: the response was wrong
                    raise InDoubtError(
                        "the service refused the request, but a job exists"
                    ) from None

    def _wait_for_unconfirmed_job(self) -> list[JobSnapshot]:
        """Step 6: look for the request's job after its response was lost."""
        waited = 0.0
        while not (result := self._find_jobs()):
            if waited >= self.timing.doubt:
                raise InDoubtError(
                    f"the service did not respond to the submission of {self.request.title} "
                    f"(request id {self.request.request_id}), and no job appeared within "
                    f"{self.timing.doubt:.0f} s. Nothing was sent twice. Run `pulumi up` again to "
                    "look for the job."
                )
            self.environment.sleep(self.timing.interval)
            waited += self.timing.interval
        return result

    def _adopt(self, jobs: Sequence[JobSnapshot], stored: StoredIntent) -> JobSnapshot:
        job = job_to_adopt(jobs, self.request)
        self._try_write(IntentState.DONE, stored, job.name)
        return job

    def _recorded_job(self, stored: StoredIntent) -> StoredIntent | JobSnapshot:
        """Return the job of a DONE record; claim the record if the job failed and lost the turn."""
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
        """Return the job of a RELEASED record, which an outdated list may omit; None if missing."""
        released = record.state is IntentState.RELEASED and record.job_name
        return self.jobs.get(record.job_name) if released else None

    def _audit(self, created: JobSnapshot) -> JobSnapshot:
        """Step 7: if expired requests created more jobs, cancel all jobs but the earliest."""
        try:
            others = [job for job in self._find_jobs(created.name) if job.state not in FAILED]
            oldest = earliest([*others, created])
            for job in (*others, created):
                if job.name != oldest.name and job.state not in TERMINAL:
                    self.jobs.cancel(job.name)
        except OperatorError:
            return created  # the job exists; after an error the engine would not store it
        return oldest

    def _write(self, state: IntentState, generation: int, job_name: str = "") -> StoredIntent:
        """Write a record by compare-and-swap. Detects a completed write whose response was lost."""
        record = IntentRecord(self.request.request_id, state, self.owner, job_name)
        try:
            return self.intents.write(record, generation)
        except PreconditionFailedError:
            current = self.intents.read(self.request.request_id)
            if current is not None and current.record == record:
                return current
            raise

    def _try_write(self, state: IntentState, stored: StoredIntent, job_name: str = "") -> None:
        """Write the record of a completed step. Ignore failures: the next run checks again."""
        try:
            self._write(state, stored.generation, job_name)
        except (PreconditionFailedError, OperatorError):
            return


def job_to_adopt(candidates: Sequence[JobSnapshot], request: SubmissionRequest) -> JobSnapshot:
    """Return the job to adopt among the jobs with the request id.

    Live and succeeded jobs can be adopted. A failed or cancelled job cannot: only a user can
    request a new run, by raising ``run``. A slot of a schedule has one job, whatever its state.

    Raises:
        JobRefusedError: a job has this request id but another request, or all jobs failed.
    """
    if request.slot:
        return earliest(candidates)
    digest = request.digest[:DIGEST_LABEL_LENGTH]
    other = [job for job in candidates if job.digest and job.digest != digest]
    if other:
        raise JobRefusedError(
            f"{other[0].name} has request id {request.request_id} and the digest of another "
            f"request. {request.renewal}"
        )
    usable = [job for job in candidates if is_usable(job.state)]
    if not usable:
        ended = earliest(candidates)
        reason = f": {ended.reason}" if ended.error else ""
        raise JobRefusedError(
            f"run {request.run} of job '{request.job}' is {ended.short_state} ({ended.name})"
            f"{reason}. Nothing was submitted. {request.renewal}"
        )
    return earliest(usable)


def deleted_job_error(name: str, request: SubmissionRequest) -> JobRefusedError:
    """Return the error for a submitted job whose record was deleted in Vertex AI."""
    return JobRefusedError(
        f"the record of run {request.run} of job '{request.job}' ({name}) was deleted. Nothing was "
        f"submitted. {request.renewal}"
    )


def current_job(name: str, parent: str, request_id: str, jobs: JobService) -> JobSnapshot | None:
    """Return the job ``name`` from a state; if the job failed, return its successor.

    A restored state can contain an old job whose request was submitted again in a later turn.
    """
    job = jobs.get(name)
    if job is not None and job.state not in FAILED:
        return job
    later = [other.name for other in jobs.find(parent, request_id) if other.name != name]
    usable = [other for key in later if (other := jobs.get(key)) and is_usable(other.state)]
    return earliest(usable) if usable else job


def earliest(candidates: Sequence[JobSnapshot]) -> JobSnapshot:
    """Return the oldest job. Two processes with the same candidates choose the same job."""
    return min(candidates, key=lambda job: (job.created, job.name))


def is_usable(state: str) -> bool:
    """Return whether a submission can adopt a job in this state."""
    return state not in (*FAILED, CANCELLING, RECORD_DELETED)
