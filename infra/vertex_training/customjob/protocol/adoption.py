"""Chooses the job to adopt among the jobs with one request id, or refuses to adopt."""

from __future__ import annotations

from collections.abc import Sequence

from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    DIGEST_LABEL_LENGTH,
    FAILED,
    RECORD_DELETED,
    JobService,
    JobSnapshot,
    SubmissionRequest,
)
from vertex_training.errors import JobRefusedError


def job_to_adopt(candidates: Sequence[JobSnapshot], request: SubmissionRequest) -> JobSnapshot:
    """Return the job to adopt among the jobs with the request id.

    Live and succeeded jobs can be adopted. A failed or cancelled job cannot: running it again costs
    money, so a user has to request it by raising ``run``. A slot of a schedule has one job,
    regardless of the job's state and of later edits of its file.

    Raises:
        JobRefusedError: a job has this request id but another request, or all jobs have failed.
    """
    if request.slot:
        return earliest(candidates)
    digest = _digest_label(request.digest)
    other = [job for job in candidates if job.digest and job.digest != digest]
    if other:
        raise JobRefusedError(
            f"{other[0].name} has request id {request.request_id} and the digest of another "
            f"request. {request.renewal}"
        )
    usable = [job for job in candidates if is_usable(job.state)]
    if not usable:
        ended = earliest(candidates)
        reason = f": {ended.reason}" if ended.error else ""
        raise JobRefusedError(
            f"run {request.run} of job '{request.job}' is {ended.short_state} ({ended.name})"
            f"{reason}. Nothing was submitted. {request.renewal}"
        )
    return earliest(usable)


def deleted_job_error(name: str, request: SubmissionRequest) -> JobRefusedError:
    """Return the error for a submitted job whose record was deleted in Vertex AI."""
    return JobRefusedError(
        f"the record of run {request.run} of job '{request.job}' ({name}) was deleted. Nothing was "
        f"submitted. {request.renewal}"
    )


def current_job(name: str, parent: str, request_id: str, jobs: JobService) -> JobSnapshot | None:
    """Return the job ``name`` from a state; if it failed or was deleted, return its successor.

    A restored state names an old job. The request may have been submitted again in a later turn.
    """
    job = jobs.get(name)
    if job is not None and job.state not in FAILED:
        return job
    later = [other.name for other in jobs.find(parent, request_id) if other.name != name]
    usable = [other for key in later if (other := jobs.get(key)) and is_usable(other.state)]
    return earliest(usable) if usable else job


def earliest(candidates: Sequence[JobSnapshot]) -> JobSnapshot:
    """Return the oldest job. Two processes with the same candidates choose the same job."""
    return min(candidates, key=lambda job: (job.created, job.name))


def is_usable(state: str) -> bool:
    """Return whether a submission can adopt a job in this state."""
    return state not in (*FAILED, CANCELLING, RECORD_DELETED)


def _digest_label(digest: str) -> str:
    return digest[:DIGEST_LABEL_LENGTH]
