"""Jobs as the provider of a stack submits them."""

from __future__ import annotations

from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
)


def submit(cloud: Cloud, script: str, job: str, run: int = 1, stack: str = "local") -> str:
    """Id of a job submitted as the stack's provider labels it."""
    labels = {STACK_LABEL: stack, JOB_LABEL: job, RUN_LABEL: str(run)}
    return submit_with(cloud, script, job, labels | {REQUEST_ID_LABEL: f"{job}-{run}"})


def submit_with(
    cloud: Cloud, script: str, job: str, labels: dict[str, str], output: str = ""
) -> str:
    """Id of a job with these labels and no other; ``output`` is its output directory."""
    spec = {"base_output_directory": {"output_uri_prefix": output}} if output else {}
    command = command_job("sh", "-c", script, **spec)
    body = {**command, "labels": labels, "display_name": f"the {job}"}
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
