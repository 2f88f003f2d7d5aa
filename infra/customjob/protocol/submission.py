"""One request, one job, whatever dies in between: the protocol, and what it decides.

``CreateCustomJob`` has no idempotency key and Vertex AI gives jobs their names, so the identity of
a submission travels as a label, and who may send is settled by a record in the control bucket that
is only ever written under a precondition. The steps, in the order of ``_Attempt.run``:

1. claim   write INTENT; take over one whose owner has not sent; outlast one that may have
2. look    a job that carries the request id is adopted, or refused
3. turn    no earlier request of the job has a job that lives, or may still get one (``turn``)
4. fence   INTENT -> SENDING under a lease; who loses this write does not send
5. send    exactly once, no retry
6. settle  a lost answer is settled by looking, never by sending again
7. audit   of several jobs for one request the earliest stays
8. record  SENDING -> DONE with the job's name

It fails closed: without a certain answer nothing is sent, and the next run looks again. The one
assumption is that a request cannot take effect later than ``Timing.lease`` after it was sent.

This module knows neither Pulumi nor Google: ``ports`` says what it asks of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from infra.customjob.protocol.adoption import adopt, earliest
from infra.customjob.protocol.ports import (
    FAILED,
    TERMINAL,
    IntentStore,
    JobRecord,
    JobService,
    Record,
    Request,
    State,
    Stored,
)
from infra.customjob.protocol.timing import Surroundings, Timing
from infra.customjob.protocol.turn import Turns
from infra.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)


def submit(
    request: Request,
    jobs: JobService,
    intents: IntentStore,
    timing: Timing = Timing(),
    around: Surroundings = Surroundings(),
) -> tuple[JobRecord, bool]:
    """The job of this request, and whether it was adopted rather than created now.

    Raises:
        JobRefusedError: a job of this run has ended badly, or is not the same request; or a job
            of an earlier request lives.
        NotSubmittedError: it is certain that nothing was created, and why.
        InDoubtError: no answer came, and no job appeared in time.
    """
    return _Attempt(request, jobs, intents, timing, around).run()


#: How often to begin again because others write the same record.
CONTENTION = 20


class _Attempt:
    """One process's try at one submission."""

    def __init__(
        self,
        request: Request,
        jobs: JobService,
        intents: IntentStore,
        timing: Timing,
        around: Surroundings,
    ) -> None:
        self.request, self.jobs, self.intents = request, jobs, intents
        self.timing, self.around = timing, around
        self.turns = Turns(request, jobs, intents, timing, around)
        self.owner = uuid.uuid4().hex

    def run(self) -> tuple[JobRecord, bool]:
        """The steps, as the module's docstring names them."""
        for _ in range(CONTENTION):
            try:
                claim = self._claim()
                if isinstance(claim, JobRecord):
                    return self._alone(claim), True
                if found := self._look():
                    return self._alone(self._adopt(found, claim)), True
                self._take_turn(claim)
                return self._send(*self._fence(claim))
            except PreconditionFailedError:
                continue  # somebody else wrote: begin again with what they wrote
        raise NotSubmittedError(
            f"job '{self.request.job}' is being submitted by others as well; nothing was sent "
            "from here. Run `pulumi up` again."
        )

    def _claim(self) -> Stored | JobRecord:
        """Step 1: a record of our own in state INTENT, or the job that makes it needless."""
        stored = self.intents.read(self.request.request_id)
        if stored is None:
            return self._write(State.INTENT, 0)
        if stored.record.state is State.DONE:
            return self._done_before(stored.record.job_name)
        if stored.record.state is State.SENDING:
            return self._outlast(stored)
        if former := self._withdrawn(stored.record):
            return self._adopt([former], stored)
        return self._write(State.INTENT, stored.generation)

    def _outlast(self, stored: Stored) -> Stored | JobRecord:
        """Wait until another's request can no longer take effect, and take over.

        Raises PreconditionFailedError if the record changes meanwhile.
        """
        over = stored.updated + self.timing.lease + self.timing.settle
        while True:
            if found := self._look():
                return self._adopt(found, stored)
            current = self.intents.read(self.request.request_id)
            if current is None or current.generation != stored.generation:
                raise PreconditionFailedError
            if self.intents.now() >= over:
                return self._write(State.INTENT, stored.generation)
            self.around.sleep(self.timing.interval)

    def _look(self, but: str = "") -> list[JobRecord]:
        """Step 2: every job that carries the request id, but the one with this name.

        Each is read by its name: a list that lags shows deleted jobs, and states of the past.
        """
        found = self.jobs.find(self.request.parent, self.request.request_id)
        names = [job.name for job in found if job.name != but]
        return [now for name in names if (now := self.jobs.get(name)) is not None]

    def _take_turn(self, claim: Stored) -> None:
        """Step 3. JobRefusedError or unable to look, the claim is given back."""
        try:
            self.turns.take()
        except OperatorError:
            self._try_write(State.RELEASED, claim)
            raise

    def _alone(self, adopted: JobRecord) -> JobRecord:
        """The adopted job. One that has ended may have been followed by a request that is lost:
        sent by an ``up`` that was killed, before the job's file was put back as it is now.
        """
        if adopted.state in TERMINAL:
            self.turns.generation_without_stray()
        return adopted

    def _fence(self, claim: Stored) -> tuple[Stored, float]:
        """Step 4: the right to send, and when it was asked for (monotonic seconds)."""
        began = self.around.monotonic()
        return self._write(State.SENDING, claim.generation), began

    def _send(self, fence: Stored, fenced_at: float) -> tuple[JobRecord, bool]:
        """Steps 5 to 8, by the process that won the fence."""
        try:
            job = self._send_once_allowed(fenced_at)
        except NotSubmittedError:
            self._try_write(State.RELEASED, fence)
            raise
        except InDoubtError:
            return self._adopt(self._settle(), fence), True
        job = self._audit(job)
        self._try_write(State.DONE, fence, job.name)
        return job, False

    def _send_once_allowed(self, fenced_at: float) -> JobRecord:
        """Step 5. Sends again only after a refusal for a missing right, and within bounds."""
        while True:
            if not self.around.engine_is_alive():
                raise NotSubmittedError("the Pulumi engine is gone; nothing was sent.")
            if self.around.monotonic() - fenced_at > self.timing.send_within:
                raise NotSubmittedError("this process was held up for too long; nothing was sent.")
            try:
                return self.jobs.create(self.request.parent, self.request.body, self.request.labels)
            except PermissionDeniedError:
                waited = self.around.monotonic() - fenced_at
                if waited + self.timing.interval > self.timing.gate:
                    raise
                self.around.sleep(self.timing.interval)
                if self._look():  # refused, and yet a job is there: an answer that was wrong
                    raise InDoubtError("a job appeared although it was refused") from None

    def _settle(self) -> list[JobRecord]:
        """Step 6: look for the job of a request whose answer was lost."""
        waited = 0.0
        while not (found := self._look()):
            if waited >= self.timing.doubt:
                raise InDoubtError(
                    f"no answer to the submission of job '{self.request.job}' (request id "
                    f"{self.request.request_id}), and no such job appeared within "
                    f"{self.timing.doubt:.0f} s. Nothing was sent twice. Run `pulumi up` again: "
                    "it looks for the job first."
                )
            self.around.sleep(self.timing.interval)
            waited += self.timing.interval
        return found

    def _adopt(self, found: Sequence[JobRecord], stored: Stored) -> JobRecord:
        job = adopt(found, self.request)
        self._try_write(State.DONE, stored, job.name)
        return job

    def _done_before(self, name: str) -> JobRecord:
        """The job a record names. Never sent again, also when Vertex AI has forgotten the job."""
        job = self.jobs.get(name)
        if job is None:
            raise JobRefusedError(
                f"run {self.request.run} of job '{self.request.job}' was submitted as {name}, and "
                "that record was deleted since. Nothing was submitted. "
                f"Set run: {self.request.run + 1} on it in the stack file to submit it once more."
            )
        return adopt([job], self.request)

    def _withdrawn(self, record: Record) -> JobRecord | None:
        """The job a freed record still names, unless its record at Vertex AI is gone.

        It was submitted moments ago, perhaps, and a list that lags would not show it.
        """
        freed = record.state is State.RELEASED and record.job_name
        return self.jobs.get(record.job_name) if freed else None

    def _audit(self, created: JobRecord) -> JobRecord:
        """Step 7: had a request taken effect after its lease, keep one job, cancel the others."""
        try:
            others = [job for job in self._look(but=created.name) if job.state not in FAILED]
            kept = earliest([*others, created])
            for job in (*others, created):
                if job.name != kept.name and job.state not in TERMINAL:
                    self.jobs.cancel(job.name)
        except OperatorError:
            return created  # the job is there; an error now would make the engine forget it
        return kept

    def _write(self, state: State, generation: int, job_name: str = "") -> Stored:
        """Compare-and-swap. A lost answer to our own write is recognised by its owner."""
        record = Record(self.request.request_id, state, self.owner, job_name)
        try:
            return self.intents.write(record, generation)
        except PreconditionFailedError:
            current = self.intents.read(self.request.request_id)
            if current is not None and current.record == record:
                return current
            raise

    def _try_write(self, state: State, stored: Stored, job_name: str = "") -> None:
        """Note down what is certain anyway. A failure costs the next run a look, and no job.

        Not raised: the job is there, and an error now would make the engine forget it.
        """
        try:
            self._write(state, stored.generation, job_name)
        except (PreconditionFailedError, OperatorError):
            return
