"""Ids, states and exit codes of jobs of Google Batch, in the words that all commands use.

The caller names a job, and a name is taken once.

So the request is submitted once by the service: a second ``create`` is refused, also after the
job's end, for as long as there is a record of it (60 days).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from vertex_training.customjob.kinds import BATCH_JOB

#: Lower case, digits and hyphens; a letter first, no hyphen last (batch v1, CreateJobRequest).
MAX_LENGTH: Final = 63
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
#: State of a job of Batch -> that of a CustomJob. One that is deleted runs no longer.
STATES: Final = {
    "QUEUED": "JOB_STATE_QUEUED",
    "SCHEDULED": "JOB_STATE_PENDING",
    "RUNNING": "JOB_STATE_RUNNING",
    "SUCCEEDED": "JOB_STATE_SUCCEEDED",
    "FAILED": "JOB_STATE_FAILED",
    "CANCELLATION_IN_PROGRESS": "JOB_STATE_CANCELLING",
    "CANCELLED": "JOB_STATE_CANCELLED",
    "DELETION_IN_PROGRESS": "JOB_STATE_CANCELLING",
}
#: What Batch means by the exit codes that are its own
#: (batch/docs/troubleshooting#reserved-exit-codes).
EXIT_CODES: Final = {
    50001: "its Spot machine was taken away",
    50002: "its machine stopped reporting: crashed, or without a way to Batch",
    50003: "its machine was started anew while it ran",
    50004: "it did not answer: a hanging step, or a full machine",
    50005: "it ran longer than its timeout",
    50006: "its machine was made anew while it ran",
}
_CODE: Final = re.compile(r"\b(5000[1-6])\b")


def job_id(stack: str, job: str, request_id: str, turn: int = 1) -> str:
    """The id of a request's job: ``STACK-JOB-DIGITS``, and with ``-tN`` in a later turn.

    Stack and job are for people, and are cut where they are long: the request id has both.

    >>> job_id("dev", "titanic", "batch-0123456789abcdef0123")
    'dev-titanic-0123456789abcdef0123'
    >>> job_id("1_Ä", "x" * 80, "batch-0123456789abcdef0123", 2)[-30:]
    'xxxxxx-0123456789abcdef0123-t2'
    """
    end = f"-{request_id.removeprefix(BATCH_JOB.id_prefix)}" + (f"-t{turn}" if turn > 1 else "")
    begin = _OTHERS.sub("-", f"{stack}-{job}".lower()).strip("-")
    begin = begin if begin[:1].isalpha() else f"j-{begin}"
    return begin[: MAX_LENGTH - len(end)].rstrip("-") + end


def is_job_of(name: str, request_id: str) -> bool:
    """Return whether a job of this name or id can be the request's: a label is no proof."""
    digits = re.escape(request_id.removeprefix(BATCH_JOB.id_prefix))
    return re.search(rf"-{digits}(-t[0-9]+)?\Z", name) is not None


def explain(description: str, exit_code: int = 0) -> str:
    """The text of an event, with what an exit code of Batch's own means.

    >>> explain("Task failed with exit code 50005.")
    'Task failed with exit code 50005. 50005: it ran longer than its timeout.'
    """
    match = _CODE.search(description)
    code = int(match[1]) if match else exit_code
    return f"{description} {code}: {EXIT_CODES[code]}." if code in EXIT_CODES else description


def reason(events: Sequence[tuple[str, int]]) -> str:
    """Return the reason for a failure, from event descriptions and exit codes, oldest first.

    The last one says that the job failed; an earlier one with an exit code says why.
    """
    if not events:
        return ""
    why = [explain(text, code) for text, code in events if code or _CODE.search(text)]
    last = explain(*events[-1])
    return " ".join(dict.fromkeys([*why[-1:], last]))
