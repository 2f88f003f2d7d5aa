"""Submit the jobs that CHAOS_JOBS names, each `name:version:run`."""

import os

import pulumi

from infra.customjob.google import job_service as client
from infra.customjob.protocol.waiting import Wait, WaitPorts, wait_for_job
from infra.customjob.request.job_file import JobRequest, Submission, canonical
from tests.chaos.impatient import ImpatientJob

PROJECT, REGION = "local-chaos", "us-central1"
#: Seconds to wait for machines that do not come; 0: not to wait.
WAIT = float(os.environ.get("CHAOS_WAIT", "0"))
POOL = {
    "replicaCount": "1",
    "machineSpec": {"machineType": "n1-standard-4"},
    "containerSpec": {"imageUri": "python:3.11", "command": ["sleep", "3600"]},
}


async def reached(name: str) -> None:
    """Wait as a stack with `wait: running` does; looking is what a fault can hold."""
    service = client.connect(PROJECT, REGION)
    await wait_for_job(
        Wait(name, 1, "running", WAIT), name, WaitPorts(service.get, lambda *_: [], print)
    )


for text in os.environ["CHAOS_JOBS"].split():
    name, version, run = text.split(":")
    spec = {"labels": {"v": version}, "jobSpec": {"workerPoolSpecs": [POOL]}}
    body = canonical({"displayName": name, **spec})
    job = ImpatientJob(
        name,
        request=JobRequest(
            Submission(PROJECT, REGION, "chaos", name, int(run)),
            f"{name}-{version}-{run}",
            body,
            frozenset(),
            (),
        ),
        labels={},
        control_bucket="control",
        on_delete="keep",
        opts=pulumi.ResourceOptions(),
    )
    if WAIT:
        job.name.apply(reached)
