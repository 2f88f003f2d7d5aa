"""The rungs of a job: requests of which the next one is sent only if there were no machines.

Each rung is a request of its own and is submitted as any other. The turn record of the job is the
memory: the request that has the turn is the current rung, whatever state file or process asks. From
rung to rung the turn passes by one write under a precondition, so two processes make one rung of
it, and one that is killed is taken up where it stood: the turn names the rung, and the record of
that request how far it came.

The only reason for the next rung is a job that failed with the service's own words for a stock-out
(``JobSnapshot.out_of_stock``). A refusal, a lost answer, a cancellation and an error of the code
leave the job where it is.

A job that leaves the stack is cancelled and then withdraws its turn: a process that is about to
pass it on loses its write. Imports neither Pulumi nor Google.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.protocol.adoption import earliest
from vertex_training.customjob.protocol.ports import (
    IntentState,
    IntentStore,
    JobService,
    JobSnapshot,
    ProcessEnvironment,
    SubmissionRequest,
    Timing,
    TurnRecord,
)
from vertex_training.customjob.protocol.submission import submit
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    PreconditionFailedError,
    RungPassedError,
)

#: How often to look again because another process passes the turn on.
MAX_LOOKS: Final = 20


@dataclass(frozen=True, slots=True)
class CurrentRung:
    """The rung that has the turn, and its job; None if that is not there yet."""

    request: SubmissionRequest
    job: JobSnapshot | None
    moved: bool = False
    """True if this process sent it, or found it, in place of the rung before."""

    def __str__(self) -> str:
        """``rung 2 of 3 (strategy SPOT)``."""
        return f"rung {self.request.rung} of {len(self.request.ladder)} ({self.request.words})"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs of one job as one process declares them, the job file first."""

    rungs: Sequence[SubmissionRequest]
    jobs: JobService
    intents: IntentStore
    timing: Timing = Timing()
    environment: ProcessEnvironment = ProcessEnvironment()

    def current(self) -> CurrentRung | None:
        """The rung that has the turn; None if none has, or the job has left the stack."""
        turn = self._turn()
        index = self._index(turn)
        if turn is None or turn.withdrawn or index is None:
            return None
        return CurrentRung(self.rungs[index], self._job(index))

    def climb(self) -> CurrentRung | None:
        """Go on to the next rung if the current one is out of stock; the rung that is current then.

        Finishes what another process began. Never submits the first rung: only ``create`` does.
        None if no rung has the turn: another request was deployed, or the job left the stack.

        Raises:
            NotSubmittedError: the next rung was refused, and stays the next one.
            InDoubtError: its answer was lost; to call this again is safe.
            JobRefusedError: its job failed otherwise, or another request is live.
        """
        for _ in range(MAX_LOOKS):
            result = self.current()
            if result is None:
                return None
            index = result.request.rung - 1
            if result.job is not None:
                if not result.job.out_of_stock or index + 1 == len(self.rungs):
                    return result
                index += 1
            elif index == 0:
                return result
            try:
                job, _ = self._submit(dataclasses.replace(self.rungs[index], moves=True))
            except JobRefusedError as error:
                if not self._is_passed(error, index):
                    raise
                continue
            return CurrentRung(self.rungs[index], job, moved=True)
        raise self._busy()

    def place(self) -> tuple[JobSnapshot, bool]:
        """The job of the current rung, or of the first one, and whether it was adopted.

        The engine calls it, which declares the job: it brings back one that left the stack.

        Raises the errors of ``submit``.
        """
        for _ in range(MAX_LOOKS):
            request = self.to_submit()
            try:
                return self._submit(request)
            except JobRefusedError as error:
                if not self._is_passed(error, request.rung - 1):
                    raise
                if self.to_submit().request_id == request.request_id:
                    raise  # it left the stack: no rung follows
        raise self._busy()

    def to_submit(self) -> SubmissionRequest:
        """The rung that ``place`` submits or adopts now. Only reads, and nothing without rungs."""
        if len(self.rungs) == 1:
            return self.rungs[0]
        turn = self._turn()
        index = self._index(turn)
        if turn is None or index is None:
            return self.rungs[0]
        job = self._job(index)
        if job and job.out_of_stock and index + 1 < len(self.rungs) and not turn.withdrawn:
            return dataclasses.replace(self.rungs[index + 1], moves=True)
        return self.rungs[index]

    def exhausted(self) -> str:
        """Return the reason why no rung is left, with that of each rung, in a line; else empty."""
        current = self.current()
        if current is None or current.job is None or not current.job.out_of_stock:
            return ""
        if current.request.rung < len(self.rungs):
            return ""
        reasons = []
        for index, request in enumerate(self.rungs):
            job = self._job(index)
            error = job.reason if job else "its record is gone"
            reasons.append(f"rung {request.rung} ({request.words}): {error}")
        return "; ".join(reasons)

    def _submit(self, request: SubmissionRequest) -> tuple[JobSnapshot, bool]:
        return submit(request, self.jobs, self.intents, self.timing, self.environment)

    def _is_passed(self, error: JobRefusedError, index: int) -> bool:
        """Return whether to look again: the turn was passed on, or the rung found no machines.

        The job of a sender that died has no record, and a list that lags may hide it for a while.
        """
        if isinstance(error, RungPassedError):
            return True
        if len(self.rungs) == 1:
            return False
        waited = 0.0
        while (job := self._job(index)) is None and waited < self.timing.settle:
            self.environment.sleep(self.timing.interval)
            waited += self.timing.interval
        return job is not None and job.out_of_stock

    def _turn(self) -> TurnRecord | None:
        return self.intents.read_turn(self.rungs[0].turn_key)

    def _index(self, turn: TurnRecord | None) -> int | None:
        ids = [request.request_id for request in self.rungs]
        return ids.index(turn.request_id) if turn and turn.request_id in ids else None

    def _job(self, index: int) -> JobSnapshot | None:
        """The job that the record of a rung names, or that was sent and never recorded."""
        request = self.rungs[index]
        stored = self.intents.read(request.request_id)
        if stored is None or stored.record.state is IntentState.INTENT:
            return None
        if stored.record.state is not IntentState.SENDING:
            name = stored.record.job_name
            return self.jobs.get(name) if name else None
        # Its sender died. Jobs of earlier turns are not of this submission.
        turn = self._turn()
        listed = self.jobs.find(request.parent, request.request_id)
        found = [job for each in listed if (job := self.jobs.get(each.name)) is not None]
        found = [job for job in found if turn is not None and job.turn >= turn.number]
        return earliest(found) if found else None

    def _busy(self) -> NotSubmittedError:
        return NotSubmittedError(
            f"{self.rungs[0].title} is being moved by others as well; nothing was sent from here. "
            "Run the same command again."
        )


def job_with_turn(request: SubmissionRequest, intents: IntentStore) -> tuple[str, str] | None:
    """Request id and job name of the rung of ``request`` that has the turn; None if none has.

    The name is empty while its job is not recorded.
    """
    turn = intents.read_turn(request.turn_key)
    if turn is None or turn.request_id not in request.ladder:
        return None
    stored = intents.read(turn.request_id)
    return turn.request_id, stored.record.job_name if stored else ""


def stop_climbing(
    request: SubmissionRequest,
    jobs: JobService,
    intents: IntentStore,
    end: Callable[[str, str], object],
    timing: Timing = Timing(),
    environment: ProcessEnvironment = ProcessEnvironment(),
) -> bool:
    """End what a job that leaves the stack has on its rung, and withdraw its turn. Repeatable.

    No process sends a rung after it. False if none of ``request.ladder`` has the turn. ``end``
    gets a request id and the name of one of its jobs, and cancels what is live. It comes first: the
    ladder of a job that goes on must not have ended.

    Raises:
        OperatorError: a record cannot be read or written; to call this again is safe.
    """
    turns = SubmissionTurn(request, jobs, intents, timing, environment)
    for _ in range(MAX_LOOKS):
        turn = intents.read_turn(request.turn_key)
        if turn is None or turn.request_id not in request.ladder:
            return False
        held = turn.request_id
        for job in turns.jobs_of(held, intents.read(held)):
            if job.request_id == held:  # whoever writes records could name any job
                end(held, job.name)
        try:
            intents.write_turn(request.turn_key, held, turn.number, turn.generation, withdrawn=True)
            left = turns.jobs_once_settled(held)
        except PreconditionFailedError:
            continue
        for job in left:
            end(held, job.name)
        return True
    raise NotSubmittedError(
        f"{request.title} is being moved by others as well: run the same command again."
    )
