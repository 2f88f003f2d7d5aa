"""At most one live request of a job at a time: the turn of a job's requests.

An edited job is another request. A job that an earlier ``up`` submitted and, being killed, never
wrote to the state is not found under the new request id: it would run on beside the new job. So
each job has a turn record, which names the request that may be sent.

A process claims its request, then acquires the turn, then writes the fence, in this order. To
acquire the turn, it reads the turn, reads the record of the request that holds it, then writes the
turn with ``ifGenerationMatch``. The write fails if another process acquired it in between. After
it, no process of the previous request can send: if one acquired the turn before, its claim is older
than the record that was read. The acquiring process releases a claim, so that its owner loses the
fence; waits for a request that may be in flight; and refuses to submit beside a live job.

Turns are numbered, and a job carries the number of its turn as a label. So a request that is asked
for again, after another one had the turn, is told from a repeated one: jobs that failed or were
cancelled in an earlier turn no longer count, and it is sent once more, in a turn of its own.

Slots of a schedule have their turns in the order of their times: none is sent after a later one,
and none once more.

Imports neither Pulumi nor Google.
"""

from __future__ import annotations

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
    """The turn of a request's job, as one process sees it."""

    request: SubmissionRequest
    jobs: JobService
    intents: IntentStore
    timing: Timing
    environment: ProcessEnvironment

    def acquire(self) -> int:
        """Give this request the turn; returns its number. Always writes: other processes notice.

        Raises:
            JobRefusedError: a job of the previous request is live.
            PreconditionFailedError: another process writes the same records; claim again.
        """
        turn = self.wait_out_previous_request()
        number, generation = (1, 0) if turn is None else (turn.number, turn.generation)
        if turn is not None and turn.request_id != self.request.request_id:
            number += 1
        self.intents.write_turn(self.request.turn_key, self.request.request_id, number, generation)
        return number

    def wait_out_previous_request(self) -> TurnRecord | None:
        """Wait until no previous request can act, and return the turn as it is (None: no turn).

        Writes no turn. Raises the errors of ``acquire``.
        """
        turn = self._read()
        if turn is not None and self.request.slot and slot_of(turn.request_id) > self.request.slot:
            raise JobRefusedError(
                f"{self.request.title} was passed: slot {slot_of(turn.request_id)} had its turn. "
                "Nothing was submitted."
            )
        if turn is not None and turn.request_id != self.request.request_id:
            self._wait_until_inactive(turn.request_id)
        return turn

    def _read(self) -> TurnRecord | None:
        """The turn.

        Raises:
            RungPassedError: a later rung of the job has it; or this one is sent only after the rung
                before it, and that one has not the turn, or has left the stack.
        """
        turn, request = self.intents.read_turn(self.request.turn_key), self.request
        held = turn.request_id if turn is not None and not turn.withdrawn else ""
        if held in request.ladder[request.rung :]:
            raise RungPassedError(f"{request.title} is on a later rung")
        if request.moves and held not in request.ladder[request.rung - 2 : request.rung]:
            raise RungPassedError(f"{request.title} left the rung before, or the stack")
        return turn

    def has_passed(self, job: JobSnapshot | None) -> bool:
        """Return whether this job of the request failed and another request had the turn since.

        None is a job whose record was deleted. Such a job does not keep the request from being sent
        once more. A job that succeeded does: there is nothing to repeat.
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
        """Return when no job of request ``previous`` is live or can still be created."""
        for jobs in self._looks_until_settled(previous):
            self._refuse(jobs)

    def jobs_once_settled(self, previous: str) -> list[JobSnapshot]:
        """The jobs that carry the id of request ``previous``, once none can be created any more.

        Not another one that its record names: whoever writes records could name any job.
        """
        jobs: list[JobSnapshot] = []
        for found in self._looks_until_settled(previous):
            jobs = [job for job in found if job.request_id == previous]
        return jobs

    def _looks_until_settled(self, previous: str) -> Iterator[list[JobSnapshot]]:
        """The jobs of request ``previous`` at each look; after the last one it cannot act.

        Raises:
            PreconditionFailedError: another process writes its record.
        """
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
        """Return whether no sent request can take effect, and a list would show a created job."""
        if stored.record.state is not IntentState.SENDING:
            return True
        return self.intents.now() >= stored.updated + self.timing.lease + self.timing.settle

    def refuse_if_live(
        self, previous: str, stored: StoredIntent | None, in_state: str = ""
    ) -> None:
        """Raise if a job of the previous request is live. One being cancelled does not count.

        Nor does the job ``in_state``, which the state has for that request.
        """
        self._refuse(self.jobs_of(previous, stored), in_state)

    def _refuse(self, jobs: Sequence[JobSnapshot], in_state: str = "") -> None:
        for job in jobs:
            if job.state in TERMINAL or job.state == CANCELLING or job.name == in_state:
                continue
            raise JobRefusedError(self._live_job_message(job, in_state))

    def jobs_of(self, previous: str, stored: StoredIntent | None) -> list[JobSnapshot]:
        """The listed jobs and the one that the record names, each read by its name."""
        names = {job.name for job in self.jobs.find(self.request.parent, previous)}
        if stored is not None and stored.record.job_name:
            names.add(stored.record.job_name)
        return [job for name in sorted(names) if (job := self.jobs.get(name)) is not None]

    def _live_job_message(self, job: JobSnapshot, in_state: str) -> str:
        number = job.name.rpartition("/")[2]
        if self.request.slot:
            return (
                f"{self.request.title} waits: {job.name} is {job.short_state}. Nothing was "
                "submitted."
            )
        if in_state:
            return (
                f"job '{self.request.job}' was submitted once more since this state was written: "
                f"{job.name} is {job.short_state}, and the state has another job of that request. "
                f"Nothing was submitted. Run `pulumi refresh --stack {self.request.stack}`, which "
                "takes it over, and look at the preview again."
            )
        return (
            f"job '{self.request.job}' has an earlier submission that this state does not know: "
            f"{job.name} is {job.short_state}. Nothing was submitted. Cancel it (`vt jobs cancel "
            f"{number} --stack {self.request.stack}`) and run `pulumi up` again, or put the job "
            "back as it was when that was submitted: then `pulumi up` takes it over."
        )
