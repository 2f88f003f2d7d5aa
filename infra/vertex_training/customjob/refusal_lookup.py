"""Looks up, within a bound of time, what a submission would be refused for, and asks Google.

A preview calls it for each job that is created or replaced, with or without credentials. So it
never fails one: what cannot be read is not read again by this process, and the submission itself
refuses later. It reads the names of all turns once, and the records of jobs only that were
submitted before.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from vertex_training.customjob.protocol.adoption import deleted_job_error, job_to_adopt
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.ports import (
    TERMINAL,
    IntentState,
    IntentStore,
    JobService,
    ProcessEnvironment,
    SubmissionRequest,
    Timing,
)
from vertex_training.customjob.protocol.turn import SubmissionTurn
from vertex_training.errors import JobRefusedError, OperatorError
from vertex_training.naming import is_local

#: Seconds that a lookup may take. Credentials alone are searched for longer where there are none.
BOUND: Final = 15.0

#: Set in a comparison with the cloud: it submits nothing, so no refused submission ends it.
COMPARES: Final = "VT_COMPARES_WITH_CLOUD"

Answer = TypeVar("Answer")
Connect = Callable[[], tuple[JobService, IntentStore]]
#: Why a request would be refused, as far as others than the records know; empty if it would not.
Ask = Callable[[], str]


class RefusalLookup:
    """The lookups of one process, by control bucket."""

    def __init__(self, bound: float = BOUND) -> None:
        self._bound = bound
        self._turns: dict[str, frozenset[str]] = {}
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def reason(
        self,
        rungs: Sequence[SubmissionRequest],
        replaced: ReplacedJob | None,
        bucket: str,
        connect: Connect,
        ask: Ask = lambda: "",
    ) -> str:
        """Return the reason why the request would be refused; empty if none was found.

        ``ask`` is called if the records show no reason.
        """
        if bucket in self._unreadable or is_comparison():
            return ""
        if is_offline(rungs[0].parent.split("/")[1]):
            return ""
        answers = answer_within(
            self._bound, lambda: self._read(rungs, replaced, bucket, connect) or _answer(ask)
        )
        if answers is None:
            self._unreadable.add(bucket)
        return answers or ""

    def _read(
        self,
        rungs: Sequence[SubmissionRequest],
        replaced: ReplacedJob | None,
        bucket: str,
        connect: Connect,
    ) -> str:
        try:
            jobs, intents = connect()
            with self._lock:
                if bucket not in self._turns:
                    self._turns[bucket] = intents.turn_keys()
            if rungs[0].turn_key not in self._turns[bucket]:
                return ""
            return refusal_reason(rungs, replaced, jobs, intents)
        except OperatorError:
            self._unreadable.add(bucket)
            return ""


def answer_within(bound: float, ask: Callable[[], Answer]) -> Answer | None:
    """Return the result of ``ask``; None if that takes more than ``bound`` seconds, or fails."""
    answers: list[Answer] = []
    reader = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    reader.start()
    reader.join(bound)
    return answers[0] if answers else None


def _answer(ask: Ask) -> str:
    try:
        return ask()
    except OperatorError:
        return ""  # asked again before a job is cancelled, and told then


def is_comparison() -> bool:
    """Return whether this preview compares the declaration with the cloud, as ``vt drift`` does."""
    return bool(os.environ.get(COMPARES))


def is_offline(project: str) -> bool:
    """Return whether this is a preview of a Google project against the stand-in plugin.

    Its state is in the local cloud's folder, and it must need neither network nor credentials.
    """
    home = os.environ.get("VT_LOCAL_HOME", "")
    backend = os.environ.get("PULUMI_BACKEND_URL", "")
    return bool(home) and not is_local(project) and backend.startswith(f"file://{home}")


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
    """Return the reason why the current rung would be refused; empty if records show none.

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
    """Return whether a job is adopted at once. Raises JobRefusedError, as steps 1 and 2 would."""
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
