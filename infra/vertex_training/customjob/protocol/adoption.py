"""Choice of the job to adopt among those with a request id, or the reason for adopting none."""

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


def job_to_adopt(found: Sequence[JobSnapshot], request: SubmissionRequest) -> JobSnapshot:
    """The job to adopt among those that carry the request id.

    Live and succeeded jobs can be adopted. A job that failed or was cancelled cannot: running it
    again costs money, so a person has to ask for it by raising ``run``. A slot of a schedule has
    one job, whatever became of it, and whatever its file said when it was sent.

    Raises:
        JobRefusedError: a job carries the request id of another request, or all have failed.
    """
    if request.slot:
        return earliest(found)
    other = [job for job in found if job.digest and job.digest != _digest_label(request.digest)]
    if other:
        raise JobRefusedError(
            f"{other[0].name} carries request id {request.request_id} but is another request. "
            f"{request.renewal}"
        )
    usable = [job for job in found if is_usable(job.state)]
    if not usable:
        ended = earliest(found)
        reason = f": {ended.reason}" if ended.error else ""
        raise JobRefusedError(
            f"run {request.run} of job '{request.job}' is {ended.short_state} ({ended.name})"
            f"{reason}. Nothing was submitted. "
            f"Set run: {request.run + 1} on it in the stack file to submit it once more."
        )
    return earliest(usable)


def deleted_job_error(name: str, request: SubmissionRequest) -> JobRefusedError:
    """The error about a job that was submitted, and whose record Vertex AI no longer has."""
    return JobRefusedError(
        f"run {request.run} of job '{request.job}' was submitted as {name}, and that record was "
        f"deleted since. Nothing was submitted. Set run: {request.run + 1} on it in the stack file "
        "to submit it once more."
    )


def current_job(name: str, parent: str, request_id: str, jobs: JobService) -> JobSnapshot | None:
    """The job ``name`` of a state; if it failed or is gone, the one that took its place.

    A state that is restored names the job of its time. The request may have been submitted once
    more since, in a later turn.
    """
    job = jobs.get(name)
    if job is not None and job.state not in FAILED:
        return job
    later = [each.name for each in jobs.find(parent, request_id) if each.name != name]
    usable = [found for each in later if (found := jobs.get(each)) and is_usable(found.state)]
    return earliest(usable) if usable else job


def earliest(found: Sequence[JobSnapshot]) -> JobSnapshot:
    """The oldest job. Two processes that see the same jobs choose the same one."""
    return min(found, key=lambda job: (job.created, job.name))


def is_usable(state: str) -> bool:
    """Return whether a submission may adopt the request's job: it is running or succeeded."""
    return state not in (*FAILED, CANCELLING, RECORD_DELETED)


def _digest_label(digest: str) -> str:
    return digest[:DIGEST_LABEL_LENGTH]
