"""Interfaces of the submission protocol (job service, intent store, process), and their values."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from vertex_training.customjob.kinds import BATCH_JOB, kind_of_request
from vertex_training.naming import JOB_LABEL_PREFIX

#: Prefix of the labels that the program sets on a job. A job file cannot set such labels.
LABEL_PREFIX: Final = JOB_LABEL_PREFIX
#: Labels of a job that contain its stack, its name in the stack, and its run.
STACK_LABEL: Final = "vt-stack"
JOB_LABEL: Final = "vt-job"
RUN_LABEL: Final = "vt-run"
#: Label with the Pulumi program of a component's job, whose environment is not a stack.
PROGRAM_LABEL: Final = "vt-program"
#: Label with the request id of a job.
REQUEST_ID_LABEL: Final = "vt-request-id"
#: Label with the first ``DIGEST_LABEL_LENGTH`` digits of the request's digest.
DIGEST_LABEL: Final = "vt-request-digest"
#: Label with the number of the turn in which a job was sent; a missing label means 1.
TURN_LABEL: Final = "vt-request-turn"
#: Label with the scheduled time of a job.
SLOT_LABEL: Final = "vt-slot"
#: Label with the number of a job's rung at the time of its submission.
RUNG_LABEL: Final = "vt-rung"
#: Keys of all labels that the program sets on a job.
JOB_LABELS: Final = (
    STACK_LABEL, PROGRAM_LABEL, JOB_LABEL, RUN_LABEL, REQUEST_ID_LABEL, DIGEST_LABEL, TURN_LABEL,
    SLOT_LABEL, RUNG_LABEL,
)  # fmt: skip
#: Key of a job's options: the rungs after the job file, in order, with ``requestId``, ``request``
#: and ``words`` (differences from the job file). Key of its outputs: the ids of all rungs.
LADDER: Final = "ladder"
#: Key of a job's outputs: ids of formerly declared rungs, one of which may still have the turn.
EARLIER_RUNGS: Final = "earlierRungs"
#: Key of a job's options: the condition for cancelling an idle job.
IDLE_STOP: Final = "idleStop"
#: Key of a job's options: sizes of the transformer that the job trains.
MODEL: Final = "model"
#: Beginning of a request id for a scheduled time. The job follows.
_SLOT_ID: Final = re.compile(r"(\d{8}t\d{6}z)-")
#: 80 bits, enough to distinguish requests. Label values have at most 63 characters.
DIGEST_LABEL_LENGTH: Final = 20

#: States of a job: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState
SUCCEEDED: Final = frozenset({"JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED"})
FAILED: Final = frozenset({"JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"})
TERMINAL: Final = SUCCEEDED | FAILED
#: A job in this state will end as SUCCEEDED, FAILED or CANCELLED.
CANCELLING: Final = "JOB_STATE_CANCELLING"
#: State of a job with a deleted record. Its resource remains in the stack: otherwise the next
#: ``pulumi up`` would submit the job again.
RECORD_DELETED: Final = "RECORD_DELETED"
RUNNING: Final = "JOB_STATE_RUNNING"


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """State and properties of a job, as returned by the service."""

    name: str
    state: str
    created: int
    """Time of creation, in nanoseconds since 1970."""
    digest: str
    error: str = ""
    turn: int = 1
    """Number of the turn in which the job was sent (``TurnRecord.number``)."""
    started: int = 0
    """Start of the job's code, in nanoseconds since 1970; 0 if not started."""
    ended: int = 0
    """End of the job's code, in nanoseconds since 1970; 0 if not ended."""
    output: str = ""
    """Output directory of the job or, for a tuning job, of its trials; empty if missing."""
    request_id: str = ""
    """Request id in the job's label; empty if missing."""
    out_of_stock: bool = False
    """True if the job failed because the service had no machines."""
    accelerators: tuple[tuple[str, int], ...] = ()
    """Name and accelerator count of each replica with accelerators; empty for jobs on Batch."""

    @property
    def short_state(self) -> str:
        """Return the state without its prefix, like ``RUNNING``."""
        return self.state.removeprefix("JOB_STATE_")

    @property
    def reason(self) -> str:
        """Return the service's error without the final period; empty without an error."""
        return self.error.rstrip(".")


def slot_of(request_id: str) -> str:
    """Return the scheduled time in a request id, or an empty text. The times sort as text.

    >>> slot_of("20261130t060000z-00aa"), slot_of("00aa11bb22cc33dd44ee")
    ('20261130t060000z', '')
    """
    match = _SLOT_ID.match(request_id)
    return match[1] if match else ""


def program_label(pulumi_project: str, stack: str) -> str:
    """Return the value of ``PROGRAM_LABEL``, which differs for stacks of the same name."""
    return f"{pulumi_project}_{stack}"


def request_labels(stack: str, job: str, run: int, request_id: str, digest: str) -> dict[str, str]:
    """Return the labels that identify the submission of a request."""
    return {
        STACK_LABEL: stack,
        REQUEST_ID_LABEL: request_id,
        DIGEST_LABEL: digest[:DIGEST_LABEL_LENGTH],
        JOB_LABEL: job,
        RUN_LABEL: str(run),
    }


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that the program set on a job; empty for jobs of other programs.

    >>> own_labels({"run": "2", "team": "ml"})
    {}
    >>> own_labels({"vt-request-id": "x", "vt-run": "2", "run": "mine"})
    {'vt-run': '2', 'vt-request-id': 'x'}
    """
    if REQUEST_ID_LABEL not in labels:
        return {}
    return {key: labels[key] for key in JOB_LABELS if key in labels}


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """A submission of a checked job file (see ``request.job_file.JobRequest``)."""

    parent: str
    stack: str
    job: str
    run: int
    request_id: str
    body: str
    digest: str
    labels: Mapping[str, str]
    ladder: tuple[str, ...] = ()
    """Request ids of all rungs of the job, including this one; empty without a ladder."""
    words: str = ""
    """Differences of this rung from the job file, as text."""
    moves: bool = False
    """True if the request is sent only while this rung or the previous rung has the turn."""

    @property
    def rung(self) -> int:
        """Return the number of the rung, from 1."""
        return self.ladder.index(self.request_id) + 1 if self.ladder else 1

    @property
    def turn_key(self) -> str:
        """Return the key of the job's turn record: ``REGION/JOB``."""
        return f"{self.parent.rpartition('/')[2]}/{self.job}"

    @property
    def slot(self) -> str:
        """Return the scheduled time of the request, or an empty text."""
        return slot_of(self.request_id)

    @property
    def title(self) -> str:
        """Return the job's name for messages, with the scheduled time of a scheduled request."""
        return f"job '{self.job}'" + (f" scheduled for {self.slot}" if self.slot else "")

    @property
    def renewal(self) -> str:
        """Return how to submit a new job when a job with the request's id already exists."""
        return f"To submit a new job, set run: {self.run + 1} of '{self.job}' in the stack file."

    @property
    def is_named(self) -> bool:
        """Return whether the request determines the job's name, so that resending has no effect."""
        return kind_of_request(self.request_id) is BATCH_JOB

    @property
    def is_repeatable(self) -> bool:
        """Return whether to send the request again if its result was deleted."""
        return False


class JobService(Protocol):
    """Calls on the job service. ``parent`` is ``projects/P/locations/R``."""

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send the CustomJob ``body`` (JSON) once. Raises NotSubmittedError or InDoubtError."""
        ...

    def get(self, name: str) -> JobSnapshot | None:
        """Return the job; None if its record does not exist."""
        ...

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """Return all jobs with the request id, from all pages and in all states."""
        ...

    def cancel(self, name: str) -> None:
        """Request cancellation. Ignores ended jobs."""
        ...

    def delete(self, name: str) -> None:
        """Delete the record of an ended job. Ignores missing records."""
        ...


class IntentState(StrEnum):
    """State of a submission in its intent record."""

    INTENT = "INTENT"
    """A process claimed the submission; nothing was sent."""
    SENDING = "SENDING"
    """A request may be in flight until the lease expires."""
    DONE = "DONE"
    """The job exists; ``job_name`` is its name."""
    RELEASED = "RELEASED"
    """The request was refused, or its job was withdrawn: any process can claim the record."""


@dataclass(frozen=True, slots=True)
class IntentRecord:
    """Record of a submission in the control bucket. ``owner`` identifies an attempt."""

    request_id: str
    state: IntentState
    owner: str
    job_name: str = ""
    stopped: str = ""
    """``idleStop``'s reason for cancelling the job, or an empty text."""


@dataclass(frozen=True, slots=True)
class StoredIntent:
    """An intent record with its generation, and ``updated``: the store's time in seconds."""

    record: IntentRecord
    generation: int
    updated: float


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """Turn record of a job: names the only request that may be sent, or that was sent last."""

    request_id: str
    generation: int
    number: int = 1
    """Number of requests that have had the turn."""
    withdrawn: bool = False
    """True if the job left the stack: no rung follows in this turn."""


class IntentStore(Protocol):
    """Intent and turn records, written by compare-and-swap."""

    def read(self, request_id: str) -> StoredIntent | None:
        """Return the intent record; None if no record exists. Strongly consistent."""
        ...

    def write(self, record: IntentRecord, generation: int) -> StoredIntent:
        """Write the record if the stored generation is ``generation`` (0: no record exists).

        Raises PreconditionFailedError for another generation.
        """
        ...

    def read_turn(self, key: str) -> TurnRecord | None:
        """Return the turn record of the job with this key, or None. Strongly consistent."""
        ...

    def turn_keys(self) -> frozenset[str]:
        """Return the keys of all turn records; empty if the store does not exist yet."""
        ...

    def write_turn(
        self, key: str, request_id: str, number: int, generation: int, *, withdrawn: bool = False
    ) -> None:
        """Write the turn record if its stored generation is ``generation`` (0: no record exists).

        Raises PreconditionFailedError for another generation.
        """
        ...

    def now(self) -> float:
        """Return the store's time, comparable with ``StoredIntent.updated``."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """Clock and engine liveness of the submitting process. Tests replace both functions."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    engine_is_alive: Callable[[], bool] = lambda: True
    """Return False after the Pulumi engine died: an orphaned provider must not send."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of the protocol, in seconds."""

    lease: float = 120.0
    """Time after the fence in which a request can take effect: twice the call's deadline."""
    send_within: float = 60.0
    """Time after the fence in which sending can begin; less than the lease minus the deadline."""
    settle: float = 35.0
    """Time to look for jobs after another process's lease expired, since lists may be outdated."""
    gate: float = 45.0
    """Time to retry while permission is denied: a new grant takes time to have effect. Each refusal
    proves that no job was created."""
    doubt: float = 90.0
    """Time to look for the job of a request after a lost response."""
    interval: float = 5.0
    """Pause between two attempts."""
