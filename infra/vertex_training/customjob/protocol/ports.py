"""Ports of the submission protocol: a job service, an intent store, a process, and their values.

``google.job_service`` and ``google.intent_store`` implement the first two.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from vertex_training.customjob.kinds import BATCH_JOB, kind_of_request
from vertex_training.naming import JOB_LABEL_PREFIX

#: How the labels begin that the program sets on a job; all others are the job file's own.
LABEL_PREFIX: Final = JOB_LABEL_PREFIX
#: Labels with the stack of a job, its name in the stack, and its run.
STACK_LABEL: Final = "vt-stack"
JOB_LABEL: Final = "vt-job"
RUN_LABEL: Final = "vt-run"
#: Label with the Pulumi program of a job whose environment is not its stack, as with components.
PROGRAM_LABEL: Final = "vt-program"
#: Label with the request id of a job.
REQUEST_ID_LABEL: Final = "vt-request-id"
#: Label with the first ``DIGEST_LABEL_LENGTH`` digits of the request's digest.
DIGEST_LABEL: Final = "vt-request-digest"
#: Label with the number of the turn in which a job was sent; 1 where it is missing.
TURN_LABEL: Final = "vt-request-turn"
#: Label with the slot of a schedule that a job was submitted for.
SLOT_LABEL: Final = "vt-slot"
#: Label with the rung of a job that has a ladder, as it was numbered when the job was sent.
RUNG_LABEL: Final = "vt-rung"
#: All of them.
JOB_LABELS: Final = (
    STACK_LABEL, PROGRAM_LABEL, JOB_LABEL, RUN_LABEL, REQUEST_ID_LABEL, DIGEST_LABEL, TURN_LABEL,
    SLOT_LABEL, RUNG_LABEL,
)  # fmt: skip
#: Key of a job's options: the rungs after the job file, in order, each with its ``requestId`` and
#: ``request``, and ``words`` for what it has otherwise. Key of its outputs: the ids of all rungs.
LADDER: Final = "ladder"
#: Key of its outputs: ids of rungs that were declared before. One of them may still have the turn.
EARLIER_RUNGS: Final = "earlierRungs"
#: Key of a job's options: when it is cancelled because its accelerators do nothing.
IDLE_STOP: Final = "idleStop"
#: How the ids of requests begin that are for a slot of a schedule: its time, then the job.
_SLOT_ID: Final = re.compile(r"(\d{8}t\d{6}z)-")
#: Label values have at most 63 characters, and 80 bits distinguish requests.
DIGEST_LABEL_LENGTH: Final = 20

#: States of a job: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState
SUCCEEDED: Final = frozenset({"JOB_STATE_SUCCEEDED", "JOB_STATE_PARTIALLY_SUCCEEDED"})
FAILED: Final = frozenset({"JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED"})
TERMINAL: Final = SUCCEEDED | FAILED
#: Not terminal, but cannot run on: it becomes SUCCEEDED, FAILED or CANCELLED.
CANCELLING: Final = "JOB_STATE_CANCELLING"
#: State of a job whose record is gone. Its resource stays in the stack: reported as gone, the next
#: ``pulumi up`` would submit the job once more.
RECORD_DELETED: Final = "RECORD_DELETED"
RUNNING: Final = "JOB_STATE_RUNNING"


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """One job as Vertex AI returned it."""

    name: str
    state: str
    created: int
    """Nanoseconds since 1970."""
    digest: str
    error: str = ""
    turn: int = 1
    """Number of the turn in which it was sent (``TurnRecord.number``)."""
    started: int = 0
    """Start of its code, in nanoseconds since 1970; 0 if it has not started."""
    ended: int = 0
    """End of its code; 0 if it has not ended."""
    output: str = ""
    """Its output directory, of a tuning job that of its trials; empty if it has none."""
    request_id: str = ""
    """The request id that it carries; empty if it carries none."""
    out_of_stock: bool = False
    """True if it failed because the service had no machines for it."""
    accelerators: tuple[tuple[str, int], ...] = ()
    """Each replica that has accelerators, and how many; none are known of a job on Batch."""

    @property
    def short_state(self) -> str:
        """The state without its prefix, like ``RUNNING``."""
        return self.state.removeprefix("JOB_STATE_")

    @property
    def reason(self) -> str:
        """The service's error as a part of a sentence; empty without one."""
        return self.error.rstrip(".")


def slot_of(request_id: str) -> str:
    """The slot that a request is for; empty if it is for none. Slots sort as their times do.

    >>> slot_of("20261130t060000z-00aa"), slot_of("00aa11bb22cc33dd44ee")
    ('20261130t060000z', '')
    """
    match = _SLOT_ID.match(request_id)
    return match[1] if match else ""


def program_label(pulumi_project: str, stack: str) -> str:
    """Value of ``PROGRAM_LABEL``: programs of several projects have stacks of one name."""
    return f"{pulumi_project}_{stack}"


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Line about a job that the program wrote; empty for the jobs of others.

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
    """One submission: a checked job file, as ``request.job_file.JobRequest`` describes it."""

    parent: str
    stack: str
    job: str
    run: int
    request_id: str
    body: str
    digest: str
    labels: Mapping[str, str]
    ladder: tuple[str, ...] = ()
    """Request ids of all rungs of the job, its own among them; empty without a ladder."""
    words: str = ""
    """Differences of this rung from the job file, in words."""
    moves: bool = False
    """True if it is sent only in the turn of the rung before it, or in its own."""

    @property
    def rung(self) -> int:
        """Return the number of the rung, from 1."""
        return self.ladder.index(self.request_id) + 1 if self.ladder else 1

    @property
    def turn_key(self) -> str:
        """Key of the turn record of this job: ``REGION/JOB``."""
        return f"{self.parent.rpartition('/')[2]}/{self.job}"

    @property
    def slot(self) -> str:
        """The slot of a schedule that it is for; empty if it is for none."""
        return slot_of(self.request_id)

    @property
    def title(self) -> str:
        """Return the name of the work in messages."""
        return f"slot {self.slot} of job '{self.job}'" if self.slot else f"job '{self.job}'"

    @property
    def renewal(self) -> str:
        """Return the fix if another object has the request's id."""
        return f"Set run: {self.run + 1} on job '{self.job}' in the stack file to submit a new one."

    @property
    def is_named(self) -> bool:
        """Return whether the service takes the job's name from the request: a repeat is one job."""
        return kind_of_request(self.request_id) is BATCH_JOB

    @property
    def is_repeatable(self) -> bool:
        """Return whether it is sent once more if its result was deleted."""
        return False


class JobService(Protocol):
    """The Vertex AI calls a submission needs. ``parent`` is ``projects/P/locations/R``."""

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send the CustomJob ``body`` (JSON) once. Raises NotSubmittedError or InDoubtError."""
        ...

    def get(self, name: str) -> JobSnapshot | None:
        """The job, or None if its record does not exist."""
        ...

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """All jobs that carry the request id, on every page and in every state."""
        ...

    def cancel(self, name: str) -> None:
        """Request cancellation. Does nothing to a job that has ended."""
        ...

    def delete(self, name: str) -> None:
        """Delete the record of a job that has ended. Does nothing if it does not exist."""
        ...


class IntentState(StrEnum):
    """State of a submission, as its intent record stores it."""

    INTENT = "INTENT"
    """Claimed; nothing was sent."""
    SENDING = "SENDING"
    """A request may be in flight until the lease expires."""
    DONE = "DONE"
    """The job exists; ``job_name`` is its name."""
    RELEASED = "RELEASED"
    """The request was refused, or its job was withdrawn: any process may claim it."""


@dataclass(frozen=True, slots=True)
class IntentRecord:
    """One submission in the control bucket. ``owner`` identifies one attempt."""

    request_id: str
    state: IntentState
    owner: str
    job_name: str = ""
    stopped: str = ""
    """Reason why the running job was cancelled on purpose; empty if it was not."""


@dataclass(frozen=True, slots=True)
class StoredIntent:
    """An intent record as read. Its generation is the precondition of the next write.

    ``updated`` is the store's time in seconds; clocks of two machines are never compared.
    """

    record: IntentRecord
    generation: int
    updated: float


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The turn: the request of a job that may be sent, or was sent last."""

    request_id: str
    generation: int
    number: int = 1
    """Number of times that the turn passed to another request, plus one."""
    withdrawn: bool = False
    """True if the job has left the stack: no rung follows in this turn."""


class IntentStore(Protocol):
    """Intent and turn records, written by compare-and-swap."""

    def read(self, request_id: str) -> StoredIntent | None:
        """The intent record, or None. Strongly consistent."""
        ...

    def write(self, record: IntentRecord, generation: int) -> StoredIntent:
        """Write the record if it still has ``generation`` (0: it does not exist).

        Raises:
            PreconditionFailedError: it has another generation.
        """
        ...

    def read_turn(self, key: str) -> TurnRecord | None:
        """The turn record at a ``turn_key``, or None. Strongly consistent."""
        ...

    def turn_keys(self) -> frozenset[str]:
        """Keys of all turn records; none if the store does not exist yet."""
        ...

    def write_turn(
        self, key: str, request_id: str, number: int, generation: int, *, withdrawn: bool = False
    ) -> None:
        """Write the turn record if it still has ``generation`` (0: it does not exist).

        Raises:
            PreconditionFailedError: it has another generation.
        """
        ...

    def now(self) -> float:
        """The store's time, comparable with ``StoredIntent.updated``."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """Clock and engine liveness of the process that submits. Tests replace them."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    engine_is_alive: Callable[[], bool] = lambda: True
    """False once the Pulumi engine is gone: its orphaned provider must not begin to send."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds of the protocol, in seconds."""

    lease: float = 120.0
    """Seconds after the fence in which a request may still take effect: twice its deadline."""
    send_within: float = 60.0
    """Seconds after the fence in which sending may begin; with the deadline less than the lease."""
    settle: float = 35.0
    """Seconds to keep looking after another process's lease has expired, in case lists lag."""
    gate: float = 45.0
    """Seconds to retry while permission is denied: the stack may have just granted it, and grants
    take time to have effect. Each refusal proves that nothing was created."""
    doubt: float = 90.0
    """Seconds to look for the job of a request whose response was lost."""
    interval: float = 5.0
    """Pause between two attempts of any of these."""
