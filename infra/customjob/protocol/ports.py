"""What the submission protocol asks of the outside: a job service, a store of records, and the
words both sides use. ``client`` and ``intent_store`` are the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
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


@dataclass(frozen=True, slots=True)
class Request:
    """One intended submission, as ``spec.JobRequest`` describes it."""

    parent: str
    stack: str
    job: str
    run: int
    request_id: str
    body: str
    digest: str
    labels: Mapping[str, str]

    @property
    def turn(self) -> str:
        """Where the turn of this job's requests is kept: ``REGION/JOB``."""
        return f"{self.parent.rpartition('/')[2]}/{self.job}"


class JobService(Protocol):
    """The Vertex AI calls a submission needs. ``parent`` is ``projects/P/locations/R``."""

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobRecord:
        """Send the CustomJob ``body`` (JSON) once. Raises NotSubmittedError or InDoubtError."""
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


class State(StrEnum):
    """What the record of a submission says."""

    INTENT = "INTENT"
    """Claimed; nothing was sent."""
    SENDING = "SENDING"
    """A request may be on its way, until the lease is over."""
    DONE = "DONE"
    """The job exists, ``job_name`` tells which."""
    RELEASED = "RELEASED"
    """JobRefusedError for certain, or withdrawn: free to be claimed."""


@dataclass(frozen=True, slots=True)
class Record:
    """One submission in the control bucket. ``owner`` is unique to one attempt."""

    request_id: str
    state: State
    owner: str
    job_name: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as read: its generation is the precondition of the next write.

    ``updated`` is the store's own time in seconds; clocks of machines are never compared.
    """

    record: Record
    generation: int
    updated: float


@dataclass(frozen=True, slots=True)
class Turn:
    """Which request of a job may be sent, or was sent last."""

    request_id: str
    generation: int


class IntentStore(Protocol):
    """Records of submissions, written by compare-and-swap."""

    def read(self, request_id: str) -> Stored | None:
        """The record, or None. Strongly consistent."""
        ...

    def write(self, record: Record, generation: int) -> Stored:
        """Write if the record still has ``generation`` (0: does not exist).

        Raises:
            PreconditionFailedError: it has another one.
        """
        ...

    def turn(self, key: str) -> Turn | None:
        """Whose turn it is (``Request.turn``), or None. Strongly consistent."""
        ...

    def take_turn(self, key: str, request_id: str, generation: int) -> None:
        """Write if the turn still has ``generation`` (0: does not exist).

        Raises:
            PreconditionFailedError: it has another one.
        """
        ...

    def now(self) -> float:
        """The store's time, comparable with ``Stored.updated``."""
        ...
