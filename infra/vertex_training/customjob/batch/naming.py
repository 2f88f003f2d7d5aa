"""Ids, states and exit codes of Google Batch jobs.

The caller chooses the job id, and each id can be used once.

So Batch itself prevents a second submission of a request: it refuses a second ``create`` as long as
it has a record of the job (60 days after its end).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from vertex_training.customjob.kinds import BATCH_JOB

#: Ids have lowercase letters, digits and hyphens, begin with a letter, and do not end with a hyphen
#: (batch v1, CreateJobRequest).
MAX_LENGTH: Final = 63
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
#: State of a Batch job -> state of a CustomJob.
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
#: Exit code reserved by Batch -> meaning (batch/docs/troubleshooting#reserved-exit-codes).
EXIT_CODES: Final = {
    50001: "the Spot VM was preempted",
    50002: "the VM stopped reporting: it crashed or lost its connection to Batch",
    50003: "the VM rebooted during the task",
    50004: "the task did not respond: it hangs, or the VM is overloaded",
    50005: "the task ran longer than its timeout",
    50006: "the VM was recreated during the task",
}
_CODE: Final = re.compile(r"\b(5000[1-6])\b")


def job_id(stack: str, job: str, request_id: str, turn: int = 1) -> str:
    """Return the job id of a request: ``STACK-JOB-DIGITS``, with ``-tN`` for a later turn.

    Long names of stack and job are cut: the request id identifies both.

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
    """Return whether a job's name or id belongs to the request. Labels are no proof of this."""
    digits = re.escape(request_id.removeprefix(BATCH_JOB.id_prefix))
    return re.search(rf"-{digits}(-t[0-9]+)?\Z", name) is not None


def explain(description: str, exit_code: int = 0) -> str:
    """Return the text of an event, with an explanation of Batch's exit code.

    >>> explain("Task failed with exit code 50005.")
    'Task failed with exit code 50005. 50005: the task ran longer than its timeout.'
    """
    match = _CODE.search(description)
    code = int(match[1]) if match else exit_code
    return f"{description} {code}: {EXIT_CODES[code]}." if code in EXIT_CODES else description


def reason(events: Sequence[tuple[str, int]]) -> str:
    """Return why a job failed, from event descriptions and exit codes, oldest first.

    The last event reports the failure; an earlier event with an exit code has the cause.
    """
    if not events:
        return ""
    why = [explain(text, code) for text, code in events if code or _CODE.search(text)]
    last = explain(*events[-1])
    return " ".join(dict.fromkeys([*why[-1:], last]))
