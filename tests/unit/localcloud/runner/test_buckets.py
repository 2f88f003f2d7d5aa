"""Paths below ``/gcs`` that code makes as it runs lead to the buckets, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.runner.gang import hosts
from tests.unit.localcloud.conftest import (
    TRAINER,
    Cloud,
    command_job,
)

JobState = vertex.JobState
pytestmark = pytest.mark.skipif(
    not hosts.has_mounts(), reason="this system gives a process no mounts of its own"
)
#: No word of a job below names the mount: ``G`` is it.
MOUNT = "G=/g; G=${G}cs; "


def shell(script: str, **spec: str) -> dict[str, Any]:
    return command_job("sh", "-ec", MOUNT + script, **spec)


def test_all_replicas_have_the_same_folder(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    job = shell("while ! test -e $G/out/two; do sleep 0.05; done; mv $G/out/two $G/out/one")
    second = shell("echo 2 >$G/out/two; sleep 600")
    job["job_spec"]["worker_pool_specs"] += second["job_spec"]["worker_pool_specs"]
    done = cloud.run(job)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(done)
    assert [blob.name for blob in out.list_blobs()] == ["one"]


def test_a_bucket_that_the_account_may_only_read_is_read_only(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    data = cloud.bucket("data")
    data.blob("a/b.txt").upload_from_string("read me")
    cloud.grant("b/data", "roles/storage.objectViewer")
    for path in ("$G/data", "/gcs/data"):  # shown as it is, and copied because it is named
        job = cloud.run(shell(f"cat {path}/a/b.txt; echo no >{path}/no", service_account=TRAINER))
        assert job.state == JobState.JOB_STATE_FAILED
        assert "read me" in cloud.log(job)
        assert "Read-only file system" in cloud.log(job)
    assert [blob.name for blob in data.list_blobs()] == ["a/b.txt"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such-program", "No such file or directory"),
        ("./no-such-file", "No such file or directory"),
        ("/gcs/out/run.sh", "Permission denied"),
        ("/gcs/out/none", "No such file or directory"),
        ("/etc", "Permission denied"),
    ],
)
def test_a_program_that_cannot_be_started_is_told(
    cloud_with_storage: Cloud, program: str, reason: str
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out").blob("run.sh").upload_from_string("#!/bin/sh\n")
    job = cloud.run(command_job(program))
    assert job.state == JobState.JOB_STATE_FAILED
    assert f"could not be started: {program}: {reason}" in job.error.message
