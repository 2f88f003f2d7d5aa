"""Which of the jobs that carry a request id is the one to take over, or why none is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from infra.customjob.protocol.ports import (
    CANCELLING,
    DIGEST_LABEL_LENGTH,
    FAILED,
    JobRecord,
    Request,
)
from infra.errors import JobRefusedError


def adopt(found: Sequence[JobRecord], request: Request) -> JobRecord:
    """The job to take over among those that carry the request id.

    Live and succeeded jobs are adopted. Others are refused: running them again costs money, and
    that is for a person to ask, by raising ``run``.
    """
    other = [job for job in found if job.digest and job.digest != _short(request.digest)]
    if other:
        raise JobRefusedError(
            f"{other[0].name} carries request id {request.request_id} but is another request. "
            f"Set run: {request.run + 1} on job '{request.job}' in the stack file to submit a new "
            "one."
        )
    usable = [job for job in found if job.state not in FAILED and job.state != CANCELLING]
    if not usable:
        ended = earliest(found)
        reason = f": {ended.error}" if ended.error else ""
        raise JobRefusedError(
            f"run {request.run} of job '{request.job}' is {_words(ended.state)} ({ended.name})"
            f"{reason}. Nothing was submitted. "
            f"Set run: {request.run + 1} on it in the stack file to submit it once more."
        )
    return earliest(usable)


def earliest(found: Sequence[JobRecord]) -> JobRecord:
    """The oldest job; two processes that look at the same jobs choose the same one."""
    return min(found, key=lambda job: (job.created, job.name))


def _short(digest: str) -> str:
    return digest[:DIGEST_LABEL_LENGTH]


def _words(state: str) -> str:
    return state.removeprefix("JOB_STATE_")
