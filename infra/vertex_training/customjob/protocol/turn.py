"""The turn among a job's requests: only the request that has the turn may run.

An edited job is another request. If an earlier ``up`` submitted a job and was killed before writing
the state, the new request id does not match that job, and both jobs would run. So each job has a
turn record, which names the request that can be sent.

A process claims its request, then acquires the turn, then writes the fence, in this order. To
acquire the turn, it reads the turn, reads the record of the request with the turn, then writes the
turn with ``ifGenerationMatch``. The write fails if another process acquired the turn in between.
Afterwards no process of the previous request can send: if one acquired the turn before, its claim
is older than the record that was read. The acquiring process releases that claim, so that its owner
loses the fence; waits for requests in flight; and refuses to submit beside a live job.

Turns have numbers, and a label of a job stores the number of its turn. If a request gets the turn
again after another request, its failed or cancelled jobs of earlier turns do not count, and the
request is sent again. Slots of a schedule have turns in the order of their times: a slot is sent at
most once, and not after a later slot.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    FAILED,
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
    ProcessEnvironment,
    StoredIntent,
    SubmissionRequest,
    Timing,
    TurnRecord,
    slot_of,
)
from vertex_training.errors import JobRefusedError, PreconditionFailedError, RungPassedError


@dataclass(frozen=True, slots=True)
class SubmissionTurn:
    """Access of a process to a job's turn."""

    request: SubmissionRequest
    jobs: JobService
    intents: IntentStore
    timing: Timing
    environment: ProcessEnvironment

    def acquire(self) -> int:
        """Acquire the turn for this request; return its number. Always writes the turn record.

        Raises:
            JobRefusedError: a job of the previous request is live.
            PreconditionFailedError: another process wrote the same records; claim again.
        """
        turn = self.wait_out_previous_request()
        number, generation = (1, 0) if turn is None else (turn.number, turn.generation)
        if turn is not None and turn.request_id != self.request.request_id:
            number += 1
        self.intents.write_turn(self.request.turn_key, self.request.request_id, number, generation)
        return number

    def wait_out_previous_request(self) -> TurnRecord | None:
        """Wait until no previous request can act; return the turn record or None.

        Does not write the record. Raises the errors of ``acquire``.
        """
        turn = self._read()
        if turn is not None and self.request.slot and slot_of(turn.request_id) > self.request.slot:
            raise JobRefusedError(
                f"{self.request.title} was skipped: the job of {slot_of(turn.request_id)} was "
                "submitted before. Nothing was submitted."
            )
        if turn is not None and turn.request_id != self.request.request_id:
            self._wait_until_inactive(turn.request_id)
        return turn

    def _read(self) -> TurnRecord | None:
        """Read the turn record. Raise RungPassedError if this rung can no longer get the turn."""
        turn, request = self.intents.read_turn(self.request.turn_key), self.request
        current = turn.request_id if turn is not None and not turn.withdrawn else ""
        if current in request.ladder[request.rung :]:
            raise RungPassedError(f"a later ladder rung of {request.title} was submitted")
        if request.moves and current not in request.ladder[request.rung - 2 : request.rung]:
            raise RungPassedError(f"{request.title} has left the previous ladder rung or the stack")
        return turn

    def has_passed(self, job: JobSnapshot | None) -> bool:
        """Return whether this job failed and another request has had the turn since then.

        None is a job with a deleted record. The request can then be sent again.
        """
        if self.request.slot or (job is not None and job.state not in FAILED):
            return False
        turn = self._read()  # after the intent record was read
        if turn is None:
            return False
        if turn.request_id != self.request.request_id:
            return True
        return job is not None and job.turn < turn.number

    def _wait_until_inactive(self, previous: str) -> None:
        for jobs in self._looks_until_settled(previous):
            self._refuse(jobs)

    def jobs_once_settled(self, previous: str) -> list[JobSnapshot]:
        """Wait until request ``previous`` cannot create jobs; return its jobs.

        Omits other jobs in its record: a manipulated record could name any job.
        """
        jobs: list[JobSnapshot] = []
        for seen in self._looks_until_settled(previous):
            jobs = [job for job in seen if job.request_id == previous]
        return jobs

    def _looks_until_settled(self, previous: str) -> Iterator[list[JobSnapshot]]:
        """Yield the jobs of request ``previous`` until that request cannot create more jobs."""
        stored = self.intents.read(previous)
        while True:
            settled = stored is not None and self._is_settled(stored)
            yield self.jobs_of(previous, stored)  # must follow the check of the lease
            if settled or stored is None:
                break
            self.environment.sleep(self.timing.interval)
            current = self.intents.read(previous)
            if current is None or current.generation != stored.generation:
                raise PreconditionFailedError
        if stored is not None and stored.record.state in (IntentState.INTENT, IntentState.SENDING):
            released = replace(stored.record, state=IntentState.RELEASED, owner=uuid.uuid4().hex)
            self.intents.write(released, stored.generation)

    def _is_settled(self, stored: StoredIntent) -> bool:
        if stored.record.state is not IntentState.SENDING:
            return True
        return self.intents.now() >= stored.updated + self.timing.lease + self.timing.settle

    def refuse_if_live(
        self, previous: str, stored: StoredIntent | None, in_state: str = ""
    ) -> None:
        """Raise JobRefusedError if a job of the previous request is live.

        Ignores jobs in cancellation, and the job ``in_state`` in the state.
        """
        self._refuse(self.jobs_of(previous, stored), in_state)

    def _refuse(self, jobs: Sequence[JobSnapshot], in_state: str = "") -> None:
        for job in jobs:
            if job.state in TERMINAL or job.state == CANCELLING or job.name == in_state:
                continue
            raise JobRefusedError(self._live_job_message(job, in_state))

    def jobs_of(self, previous: str, stored: StoredIntent | None) -> list[JobSnapshot]:
        """Return the existing jobs of a request, from the service's list and from its record."""
        names = {job.name for job in self.jobs.find(self.request.parent, previous)}
        if stored is not None and stored.record.job_name:
            names.add(stored.record.job_name)
        return [job for name in sorted(names) if (job := self.jobs.get(name)) is not None]

    def _live_job_message(self, job: JobSnapshot, in_state: str) -> str:
        number = job.name.rpartition("/")[2]
        if self.request.slot:
            return (
                f"{self.request.title} waits for {job.name}, which is {job.short_state}. Nothing "
                "was submitted."
            )
        if in_state:
            return (
                f"job '{self.request.job}' was submitted again after this state was written: "
                f"{job.name} is {job.short_state}, and the state has an older job of that request. "
                f"Nothing was submitted. Run `pulumi refresh --stack {self.request.stack}` to "
                "adopt "
                "the new job, then preview again."
            )
        return (
            f"job '{self.request.job}' has an earlier submission that is missing in this state: "
            f"{job.name} is {job.short_state}. Nothing was submitted. Cancel that job (`vt jobs "
            f"cancel {number} --stack {self.request.stack}`) and run `pulumi up` again, or revert "
            "the edits of the job since that submission: then `pulumi up` adopts that job."
        )
