"""Jobs as the provider of a stack submits them."""

from __future__ import annotations

from localcloud.vertex.records import JobState
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until


def submit(cloud: Cloud, script: str, job: str, run: int = 1, stack: str = "local") -> str:
    """Id of a job submitted as the stack's provider labels it."""
    labels = {"stack": stack, "job": job, "run": str(run), "request-id": f"{job}-{run}"}
    body = {**command_job("sh", "-c", script), "labels": labels, "display_name": f"the {job}"}
    return cloud.submit(body).name.rpartition("/")[2]


def done(cloud: Cloud, job_id: str) -> str:
    """The id, once the job has ended."""

    def ended() -> bool:
        record = cloud.jobs.get(job_id)
        return record is not None and record.state.terminal

    wait_until(ended)
    return job_id


def until_running(cloud: Cloud, job_id: str) -> str:
    def running() -> bool:
        record = cloud.jobs.get(job_id)
        return record is not None and record.state is JobState.RUNNING

    wait_until(running)
    return job_id
