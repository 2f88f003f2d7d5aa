"""What a submission would be refused for, looked up before anything is cancelled.

The same records and the same rules as ``submission``, which decides: this module only reads, and
what it does not find is no promise. Imports neither Pulumi nor Google.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vertex_training.customjob.protocol.adoption import deleted_job_error, job_to_adopt
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.ports import (
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    ProcessEnvironment,
    SubmissionRequest,
)
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import JobRefusedError


class ReplacedJob(NamedTuple):
    """The job of a state that is cancelled for a new request."""

    request_id: str
    name: str


def refusal_reason(
    rungs: Sequence[SubmissionRequest],
    replaced: ReplacedJob | None,
    jobs: JobService,
    intents: IntentStore,
) -> str:
    """Why the rung that is submitted now would be refused; empty if records show no reason.

    ``replaced`` is cancelled first. None if that is not known: then live jobs of other requests are
    no reason.

    Raises:
        OperatorError: records or jobs cannot be read.
    """
    request = Ladder(rungs, jobs, intents).to_submit()
    turn = SubmissionTurn(request, jobs, intents, Timing(), ProcessEnvironment())
    try:
        if _has_live_job(request, turn, jobs, intents):
            return ""
        held = None if replaced is None else intents.read_turn(request.turn_key)
        if replaced is not None and held is not None and held.request_id != request.request_id:
            in_state = replaced.name if held.request_id == replaced.request_id else ""
            turn.refuse_if_live(held.request_id, intents.read(held.request_id), in_state)
    except JobRefusedError as refused:
        return str(refused)
    return ""


def _has_live_job(
    request: SubmissionRequest, turn: SubmissionTurn, jobs: JobService, intents: IntentStore
) -> bool:
    """Whether a job is adopted at once. Raises JobRefusedError, as steps 1 and 2 would."""
    stored = intents.read(request.request_id)
    if stored is None or not stored.record.job_name:
        return False
    job = jobs.get(stored.record.job_name)
    if job is None and stored.record.state is not IntentState.DONE:
        return False
    if turn.has_passed(job):
        return False
    if job is None:
        raise deleted_job_error(stored.record.job_name, request)
    return job_to_adopt([job], request).state not in TERMINAL
