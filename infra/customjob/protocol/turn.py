"""The requests of one job take turns: before one is sent, nothing of the one before may still run.

An edited job is another request. Nothing under its own request id tells of a job that an earlier
``up`` sent and, being killed, never wrote into the state: it would run on beside the new one. So
a record for each job names the request whose turn it is.

Whoever sends has claimed its request, then taken the turn, then fenced, in this order. Whoever
takes the turn from another request first reads the turn, then that request's record, and writes
the turn only if nobody took it meanwhile. So no process of the former request can send any more:
if it took the turn before, its claim is older than the record that was read. A claim is taken
away, and its owner loses the fence; a request that may be on its way is waited for; a job that
lives is an error.

This module knows neither Pulumi nor Google.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from infra.customjob.protocol.ports import (
    CANCELLING,
    TERMINAL,
    IntentStore,
    JobRecord,
    JobService,
    Request,
    State,
    Stored,
)
from infra.customjob.protocol.timing import Surroundings, Timing
from infra.errors import JobRefusedError, PreconditionFailedError


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of a request's job, as one process sees them."""

    request: Request
    jobs: JobService
    intents: IntentStore
    timing: Timing
    around: Surroundings

    def take(self) -> None:
        """Make it this request's turn. Written anew each time: others see that it was taken.

        Raises:
            JobRefusedError: a job of the former request lives.
            PreconditionFailedError: others write the same records; claim the request anew.
        """
        self.intents.take_turn(
            self.request.turn, self.request.request_id, self.generation_without_stray()
        )

    def generation_without_stray(self) -> int:
        """Generation of the turn's record (0: none), once nothing of another request is left.

        Raises as ``take``, and writes no turn.
        """
        turn = self.intents.turn(self.request.turn)
        if turn is None:
            return 0
        if turn.request_id != self.request.request_id:
            self._see_out(turn.request_id)
        return turn.generation

    def _see_out(self, former: str) -> None:
        """Return when no job of the request ``former`` lives, or can still come to be."""
        stored = self.intents.read(former)
        while True:
            over = stored is not None and self._cannot_come_anymore(stored)
            self._refuse_beside_living(former, stored)  # the last look comes after that moment
            if over or stored is None:
                break
            self.around.sleep(self.timing.interval)
            current = self.intents.read(former)
            if current is None or current.generation != stored.generation:
                raise PreconditionFailedError
        if stored is not None and stored.record.state in (State.INTENT, State.SENDING):
            freed = replace(stored.record, state=State.RELEASED, owner=uuid.uuid4().hex)
            self.intents.write(freed, stored.generation)

    def _cannot_come_anymore(self, stored: Stored) -> bool:
        """Whether no request under way can take effect, and a list would show what did."""
        if stored.record.state is not State.SENDING:
            return True
        return self.intents.now() >= stored.updated + self.timing.lease + self.timing.settle

    def _refuse_beside_living(self, former: str, stored: Stored | None) -> None:
        """Raise if a job of the former request lives. One being cancelled is past saving."""
        for job in self._jobs_of(former, stored):
            if job.state not in TERMINAL and job.state != CANCELLING:
                raise JobRefusedError(self._words(job))

    def _jobs_of(self, former: str, stored: Stored | None) -> list[JobRecord]:
        """The jobs a list shows and the one the record names, each read by its name."""
        names = {job.name for job in self.jobs.find(self.request.parent, former)}
        if stored is not None and stored.record.job_name:
            names.add(stored.record.job_name)
        return [job for name in sorted(names) if (job := self.jobs.get(name)) is not None]

    def _words(self, job: JobRecord) -> str:
        state, number = job.state.removeprefix("JOB_STATE_"), job.name.rpartition("/")[2]
        return (
            f"job '{self.request.job}' has an earlier submission that this state does not know: "
            f"{job.name} is {state}. Nothing was submitted. Cancel it (`vt jobs cancel {number} "
            f"--stack {self.request.stack}`) and run `pulumi up` again, or put the job back as it "
            "was when that was submitted: then `pulumi up` takes it over."
        )
