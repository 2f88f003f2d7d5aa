"""URLs of a job and of its logs."""

from __future__ import annotations

from urllib.parse import quote

from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, JobKind
from vertex_training.naming import is_local


def of_job(project: str, region: str, number: str, kind: JobKind = CUSTOM_JOB) -> tuple[str, str]:
    """URLs of the job and of its logs, or the commands for a local job. ``number`` is its id."""
    if is_local(project):  # the local cloud has no console
        if kind is CUSTOM_JOB:
            return "vt local status", f"vt local logs {number}"
        return f"vt jobs show {number}", f"vt jobs logs {number}"
    console = "https://console.cloud.google.com"
    if kind is BATCH_JOB:
        # The uid that log entries have begins with the job's id.
        text = f'resource.type="batch.googleapis.com/Job" labels.job_uid:"{number}"'
        query = quote(text, safe="")
        job = f"{console}/batch/jobsDetail/regions/{region}/jobs/{number}/details?project={project}"
        return job, f"{console}/logs/query;query={query}?project={project}"
    query = quote(f'resource.type="ml_job" resource.labels.job_id="{number}"', safe="")
    # The path since the product was renamed, as the official SDK prints it (2.7.0, jobs.py).
    job = f"{console}/agent-platform/locations/{region}/training/{number}?project={project}"
    return job, f"{console}/logs/query;query={query}?project={project}"
