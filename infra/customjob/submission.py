"""Which job belongs to a request: adopt it, refuse, or send one.

``CreateCustomJob`` has no idempotency key and Vertex AI gives jobs their names, so the identity
of a submission travels as a label. This module knows neither Pulumi nor Google: it decides, over
the ``JobService`` port that ``client`` implements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

REQUEST_ID_LABEL = "request-id"
DIGEST_LABEL = "request-digest"
#: Label values end at 63 characters, and 80 bits tell requests apart.
DIGEST_LABEL_LENGTH = 20

#: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState
SUCCEEDED = frozenset({"JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED"})
FAILED = frozenset({"JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"})
TERMINAL = SUCCEEDED | FAILED
#: Not ended, but past saving: it only becomes SUCCEEDED, FAILED or CANCELLED.
CANCELLING = "JOB_STATE_CANCELLING"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What Vertex AI says of one job. ``created`` is in nanoseconds since 1970."""

    name: str
    state: str
    created: int
    digest: str
    error: str = ""


class JobService(Protocol):
    """The Vertex AI calls a submission needs. ``parent`` is ``projects/P/locations/R``."""

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobRecord:
        """Send the CustomJob ``body`` (JSON) once. Raises NotSubmitted or InDoubt."""
        ...

    def get(self, name: str) -> JobRecord | None:
        """The job, or None if there is no such record."""
        ...

    def find(self, parent: str, request_id: str) -> list[JobRecord]:
        """All jobs that carry the request id, on every page and in every state."""
        ...

    def cancel(self, name: str) -> None:
        """Ask for the job to be cancelled; a job that has ended is left alone."""
        ...

    def delete(self, name: str) -> None:
        """Delete the record of an ended job; a missing one is fine."""
        ...


class OperatorError(Exception):
    """Something a person can act on: the text says what was refused and what to do."""


class NotSubmitted(OperatorError):
    """The service refused: it is certain that no job was created."""


class InDoubt(OperatorError):
    """The answer was lost: a job may or may not have been created."""


class Refused(OperatorError):
    """A job exists for this request and must not be run again without being asked to."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One intended submission, as ``spec.JobRequest`` describes it."""

    parent: str
    job: str
    run: int
    request_id: str
    body: str
    digest: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds, in seconds, of waiting for something to become visible."""

    settle: float = 30.0
    """How long to look for a job whose answer was lost."""
    interval: float = 3.0


def submit(
    jobs: JobService,
    intent: Intent,
    patience: Patience = Patience(),
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[JobRecord, bool]:
    """The job of this intent, and whether it was adopted rather than created now.

    Raises:
        Refused: a job of this run has ended badly, or is not the same request.
        NotSubmitted: the service said no.
        InDoubt: no answer came, and no job appeared within ``patience``.
    """
    if found := jobs.find(intent.parent, intent.request_id):
        return adopt(found, intent), True
    try:
        created = jobs.create(intent.parent, intent.body, intent.labels)
    except InDoubt:
        # Never sent again from here: if the lost request did arrive, the job shows up by label.
        return _settle(jobs, intent, patience, sleep), True
    return _keep_earliest(jobs, intent, created), False


def adopt(found: Sequence[JobRecord], intent: Intent) -> JobRecord:
    """The job to take over among those that carry the request id.

    Live and succeeded jobs are adopted. Others are refused: running them again costs money, and
    that is for a person to ask, by raising ``run``.
    """
    other = [job for job in found if job.digest and job.digest != _short(intent.digest)]
    if other:
        raise Refused(
            f"{other[0].name} carries request id {intent.request_id} but is another request. "
            f"Set run: {intent.run + 1} on job '{intent.job}' to submit a new one."
        )
    usable = [job for job in found if job.state not in FAILED and job.state != CANCELLING]
    if not usable:
        ended = earliest(found)
        reason = f": {ended.error}" if ended.error else ""
        raise Refused(
            f"run {intent.run} of job '{intent.job}' is {_words(ended.state)} ({ended.name})"
            f"{reason}. Nothing was submitted. "
            f"Set run: {intent.run + 1} on the job to submit it once more."
        )
    return earliest(usable)


def earliest(found: Sequence[JobRecord]) -> JobRecord:
    """The oldest job; two processes that look at the same jobs choose the same one."""
    return min(found, key=lambda job: (job.created, job.name))


def withdraw(
    jobs: JobService,
    name: str,
    *,
    delete_record: bool,
    bound: float = 120.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Cancel a job, wait until it has ended, and delete its record if asked to. Repeatable.

    Raises:
        OperatorError: it did not end within ``bound`` seconds.
    """
    waited, pause = 0.0, 0.2
    record = jobs.get(name)
    if record is not None and record.state not in TERMINAL:
        jobs.cancel(name)
        record = jobs.get(name)
    while record is not None and record.state not in TERMINAL:
        if waited >= bound:
            raise OperatorError(
                f"{name} is still {_words(record.state)} after {bound:.0f} s of cancelling. "
                "It stays in the stack; run the same command again."
            )
        sleep(pause)
        waited, pause = waited + pause, min(pause * 2, 5.0)
        record = jobs.get(name)
    if record is not None and delete_record:
        jobs.delete(name)


def _settle(
    jobs: JobService, intent: Intent, patience: Patience, sleep: Callable[[float], None]
) -> JobRecord:
    """Look for the job of a request whose answer was lost."""
    waited = 0.0
    while not (found := jobs.find(intent.parent, intent.request_id)):
        if waited >= patience.settle:
            raise InDoubt(
                f"no answer to the submission of job '{intent.job}' (request id "
                f"{intent.request_id}), and no such job appeared within {patience.settle:.0f} s. "
                "Nothing was sent twice. Run `pulumi up` again: it looks for the job first."
            )
        sleep(patience.interval)
        waited += patience.interval
    return adopt(found, intent)


def _keep_earliest(jobs: JobService, intent: Intent, created: JobRecord) -> JobRecord:
    """Audit: had another process sent the same request, keep one job and cancel the others."""
    live = [job for job in jobs.find(intent.parent, intent.request_id) if job.state not in FAILED]
    if len(live) < 2:
        return created
    kept = earliest(live)
    for job in live:
        if job.name != kept.name and job.state not in TERMINAL:
            jobs.cancel(job.name)
    return kept


def _short(digest: str) -> str:
    return digest[:DIGEST_LABEL_LENGTH]


def _words(state: str) -> str:
    return state.removeprefix("JOB_STATE_")
