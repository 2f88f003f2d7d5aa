"""Submit the jobs in CHAOS_JOBS (`name:version:run` each) of the kind CHAOS_KIND."""

import os

import pulumi

from tests.chaos.impatient import ImpatientJob, ImpatientTuningJob
from tests.chaos.messages import smallest
from vertex_training.customjob.google import backends
from vertex_training.customjob.kinds import BATCH_JOB, KINDS, TUNING_JOB
from vertex_training.customjob.protocol.waiting import Wait, WaitPorts, wait_for_job
from vertex_training.customjob.request.job_file import JobRequest, Submission, canonical

PROJECT, REGION = "local-chaos", "us-central1"
#: Seconds to wait for machines that do not come; 0: not to wait.
WAIT = float(os.environ.get("CHAOS_WAIT", "0"))
KIND = next(k for k in (*KINDS, BATCH_JOB) if k.message == os.environ["CHAOS_KIND"])


async def reached(name: str) -> None:
    """Wait like a stack with `wait: running`; a fault can hold these calls."""
    service = backends.connect(PROJECT, REGION, KIND)
    await wait_for_job(
        Wait(name, 1, "running", WAIT), name, WaitPorts(service.get, lambda *_: [], print)
    )


for text in os.environ["CHAOS_JOBS"].split():
    name, version, run = text.split(":")
    body = canonical(smallest(KIND, name) | {"labels": {"v": version}})
    job = (ImpatientTuningJob if KIND is TUNING_JOB else ImpatientJob)(
        name,
        request=JobRequest(
            Submission(PROJECT, REGION, "chaos", name, int(run)),
            f"{KIND.id_prefix}{name}-{version}-{run}",
            body,
            frozenset(),
            (),
            kind=KIND,
        ),
        labels={},
        control_bucket="control",
        options={"onDelete": "keep"},
        opts=pulumi.ResourceOptions(),
    )
    if WAIT:
        job.name.apply(reached)
