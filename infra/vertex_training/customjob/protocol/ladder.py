"""Ladder of a job: alternative requests, sent in order while no machines are available.

Each rung is a separate request with the usual submission. The job's turn record stores the current
rung: the request with the turn, regardless of state file and process. The turn passes to the next
rung by one write under a precondition, so two processes submit a rung once. After a process was
killed, the next process resumes: the turn names the rung, and the request's record its progress.

The next rung follows only if a job failed with the service's message for a stock-out
(``JobSnapshot.out_of_stock``). A refusal, a lost response, a cancellation or an error of the code
does not change the rung. A job that leaves the stack is cancelled and then withdraws its turn: a
concurrent process that passes the turn on loses its write.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.protocol import ports
from vertex_training.customjob.protocol.submission import earliest, submit
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    PreconditionFailedError,
    RungPassedError,
)

#: Maximum number of attempts while other processes move the turn to other rungs.
MAX_LOOKS: Final = 20


@dataclass(frozen=True, slots=True)
class CurrentRung:
    """The request on a ladder that may run now, and the job of this request, if the job exists."""

    request: ports.SubmissionRequest
    job: ports.JobSnapshot | None
    moved: bool = False
    """True if this process moved the job from the previous rung of its ladder to this rung."""

    def __str__(self) -> str:
        """Return a text like ``rung 2 of 3 (strategy SPOT)``."""
        return f"rung {self.request.rung} of {len(self.request.ladder)} ({self.request.words})"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The requests that a job tries in order. The first is the request of the job file."""

    rungs: Sequence[ports.SubmissionRequest]
    jobs: ports.JobService
    intents: ports.IntentStore
    timing: ports.Timing = ports.Timing()
    environment: ports.ProcessEnvironment = ports.ProcessEnvironment()

    def current(self) -> CurrentRung | None:
        """Return the rung with the turn; None if no rung has the turn or the job left the stack."""
        turn = self._turn()
        index = self._index(turn)
        if turn is None or turn.withdrawn or index is None:
            return None
        return CurrentRung(self.rungs[index], self._job(index))

    def climb(self) -> CurrentRung | None:
        """Submit the next rung if the current rung got no machines; return the current rung.

        Completes the interrupted work of another process. Never submits the first rung: only
        ``create`` does. Returns None if another request was deployed, or the job left the stack.

        Raises:
            NotSubmittedError: the next rung was refused; a later call tries this rung again.
            InDoubtError: the response was lost; repeating the call is safe.
            JobRefusedError: the rung failed for another reason, or another request is live.
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

    def place(self) -> tuple[ports.JobSnapshot, bool]:
        """Submit or adopt the current or first rung; return its job, and True if it was adopted.

        A job that left the stack is submitted again. Raises the errors of ``submit``.
        """
        for _ in range(MAX_LOOKS):
            request = self.to_submit()
            try:
                return self._submit(request)
            except JobRefusedError as error:
                if not self._is_passed(error, request.rung - 1):
                    raise
                if self.to_submit().request_id == request.request_id:
                    raise  # the job left the stack: no rung follows
        raise self._busy()

    def to_submit(self) -> ports.SubmissionRequest:
        """Return the rung that ``place`` would submit or adopt."""
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
        """Return the failures of all rungs in one line; empty unless all rungs failed."""
        current = self.current()
        if current is None or current.job is None or not current.job.out_of_stock:
            return ""
        if current.request.rung < len(self.rungs):
            return ""
        reasons = []
        for index, request in enumerate(self.rungs):
            job = self._job(index)
            error = job.reason if job else "the job's record was deleted"
            reasons.append(f"rung {request.rung} ({request.words}): {error}")
        return "; ".join(reasons)

    def _submit(self, request: ports.SubmissionRequest) -> tuple[ports.JobSnapshot, bool]:
        return submit(request, self.jobs, self.intents, self.timing, self.environment)

    def _is_passed(self, error: JobRefusedError, index: int) -> bool:
        """Return whether ``climb`` must check again: this rung lost the turn or got no machines."""
        if isinstance(error, RungPassedError):
            return True
        if len(self.rungs) == 1:
            return False
        waited = 0.0
        while (job := self._job(index)) is None and waited < self.timing.settle:
            self.environment.sleep(self.timing.interval)
            waited += self.timing.interval
        return job is not None and job.out_of_stock

    def _turn(self) -> ports.TurnRecord | None:
        return self.intents.read_turn(self.rungs[0].turn_key)

    def _index(self, turn: ports.TurnRecord | None) -> int | None:
        ids = [request.request_id for request in self.rungs]
        return ids.index(turn.request_id) if turn and turn.request_id in ids else None

    def _job(self, index: int) -> ports.JobSnapshot | None:
        request = self.rungs[index]
        stored = self.intents.read(request.request_id)
        if stored is None or stored.record.state is ports.IntentState.INTENT:
            return None
        if stored.record.state is not ports.IntentState.SENDING:
            name = stored.record.job_name
            return self.jobs.get(name) if name else None
        # The sending process died. Jobs of earlier turns do not belong to this submission.
        turn = self._turn()
        listed = self.jobs.find(request.parent, request.request_id)
        existing = [job for entry in listed if (job := self.jobs.get(entry.name)) is not None]
        sent = [job for job in existing if turn is not None and job.turn >= turn.number]
        return earliest(sent) if sent else None

    def _busy(self) -> NotSubmittedError:
        return NotSubmittedError(
            f"other processes are submitting ladder rungs of {self.rungs[0].title}. This process "
            "submitted nothing. Run the same command again."
        )


def job_with_turn(
    request: ports.SubmissionRequest, intents: ports.IntentStore
) -> tuple[str, str] | None:
    """Return request id and job name (empty if not recorded) of the rung with the turn, or None."""
    turn = intents.read_turn(request.turn_key)
    if turn is None or turn.request_id not in request.ladder:
        return None
    stored = intents.read(turn.request_id)
    return turn.request_id, stored.record.job_name if stored else ""


def stop_climbing(
    request: ports.SubmissionRequest,
    jobs: ports.JobService,
    intents: ports.IntentStore,
    end: Callable[[str, str], object],
    timing: ports.Timing = ports.Timing(),
    environment: ports.ProcessEnvironment = ports.ProcessEnvironment(),
) -> bool:
    """End the jobs of the current rung when a job leaves the stack, and withdraw the job's turn.

    Afterwards no process sends a rung. Returns False if no rung in ``request.ladder`` has the turn.
    ``end`` gets a request id and a job name, and cancels a live job. It runs before the withdrawal:
    a job that continues must retain its ladder. Repeating the call is safe.

    Raises:
        OperatorError: a record cannot be read or written.
    """
    turns = SubmissionTurn(request, jobs, intents, timing, environment)
    for _ in range(MAX_LOOKS):
        turn = intents.read_turn(request.turn_key)
        if turn is None or turn.request_id not in request.ladder:
            return False
        current = turn.request_id
        for job in turns.jobs_of(current, intents.read(current)):
            if job.request_id == current:  # a manipulated record could name any job
                end(current, job.name)
        try:
            intents.write_turn(
                request.turn_key, current, turn.number, turn.generation, withdrawn=True
            )
            left = turns.jobs_once_settled(current)
        except PreconditionFailedError:
            continue
        for job in left:
            end(current, job.name)
        return True
    raise NotSubmittedError(
        f"other processes are submitting ladder rungs of {request.title}. Run the command again."
    )
