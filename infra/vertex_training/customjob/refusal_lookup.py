"""Predicts in a preview, within a time limit, whether the service or records refuse a job.

The lookup never fails a preview, also without credentials: an unreadable bucket is not read again,
and the submission itself is refused later.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from vertex_training.customjob.protocol import ports
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.submission import deleted_job_error, job_to_adopt
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import JobRefusedError, OperatorError
from vertex_training.naming import is_local

#: Time limit of a lookup in seconds. A search for missing credentials would take longer.
BOUND: Final = 15.0

#: Variable that is set in a comparison with the cloud, which submits nothing and ignores refusals.
COMPARES: Final = "VT_COMPARES_WITH_CLOUD"

Answer = TypeVar("Answer")
Connect = Callable[[], tuple[ports.JobService, ports.IntentStore]]
#: Function that returns a reason for a refusal that the records do not contain, or empty text.
Ask = Callable[[], str]


class RefusalLookup:
    """Results of lookups in one process, by control bucket."""

    def __init__(self, bound: float = BOUND) -> None:
        self._bound = bound
        self._turns: dict[str, frozenset[str]] = {}
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def reason(
        self,
        rungs: Sequence[ports.SubmissionRequest],
        replaced: ReplacedJob | None,
        bucket: str,
        connect: Connect,
        ask: Ask = lambda: "",
    ) -> str:
        """Return the reason why the request would be refused; empty without a known reason.

        Calls ``ask`` if the records have no reason.
        """
        if bucket in self._unreadable or is_comparison():
            return ""
        if is_offline(rungs[0].parent.split("/")[1]):
            return ""

        def read() -> str:
            try:
                jobs, intents = connect()
                with self._lock:
                    if bucket not in self._turns:
                        self._turns[bucket] = intents.turn_keys()
                is_known = rungs[0].turn_key in self._turns[bucket]
                reason = refusal_reason(rungs, replaced, jobs, intents) if is_known else ""
                if reason:
                    return reason
            except OperatorError:
                self._unreadable.add(bucket)
            try:
                return ask()
            except OperatorError:
                return ""  # the provider checks again and reports before it cancels a job

        answer = answer_within(self._bound, read)
        if answer is None:
            self._unreadable.add(bucket)
        return answer or ""


def answer_within(bound: float, ask: Callable[[], Answer]) -> Answer | None:
    """Return the result of ``ask``; None if the call fails or takes more than ``bound`` seconds."""
    answers: list[Answer] = []
    reader = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    reader.start()
    reader.join(bound)
    return answers[0] if answers else None


def is_comparison() -> bool:
    """Return whether this preview compares the state with the cloud, as in ``vt drift``."""
    return bool(os.environ.get(COMPARES))


def is_offline(project: str) -> bool:
    """Return whether this is a preview of a Google project without network and credentials.

    Its plugin is the local cloud's, and its state is in the local cloud's folder.
    """
    home = os.environ.get("VT_LOCAL_HOME", "")
    backend = os.environ.get("PULUMI_BACKEND_URL", "")
    return bool(home) and not is_local(project) and backend.startswith(f"file://{home}")


class ReplacedJob(NamedTuple):
    """The job in a state that a new request replaces."""

    request_id: str
    name: str


def refusal_reason(
    rungs: Sequence[ports.SubmissionRequest],
    replaced: ReplacedJob | None,
    jobs: ports.JobService,
    intents: ports.IntentStore,
) -> str:
    """Return the reason why records refuse the current rung; empty if the records accept it.

    Live jobs of other requests are a reason only if the request replaces a job, ``replaced``.

    Raises:
        OperatorError: records or jobs cannot be read.
    """
    request = Ladder(rungs, jobs, intents).to_submit()
    turn = SubmissionTurn(request, jobs, intents, ports.Timing(), ports.ProcessEnvironment())
    try:
        if _has_live_job(request, turn, jobs, intents):
            return ""
        stored = None if replaced is None else intents.read_turn(request.turn_key)
        if replaced is not None and stored is not None and stored.request_id != request.request_id:
            in_state = replaced.name if stored.request_id == replaced.request_id else ""
            turn.refuse_if_live(stored.request_id, intents.read(stored.request_id), in_state)
    except JobRefusedError as refused:
        return str(refused)
    return ""


def _has_live_job(
    request: ports.SubmissionRequest,
    turn: SubmissionTurn,
    jobs: ports.JobService,
    intents: ports.IntentStore,
) -> bool:
    stored = intents.read(request.request_id)
    if stored is None or not stored.record.job_name:
        return False
    job = jobs.get(stored.record.job_name)
    if job is None and stored.record.state is not ports.IntentState.DONE:
        return False
    if turn.has_passed(job):
        return False
    if job is None:
        raise deleted_job_error(stored.record.job_name, request)
    return job_to_adopt([job], request).state not in ports.TERMINAL
