"""Jobs that run: as processes, with their grants, their mounts, their ends."""

from __future__ import annotations

from google.cloud import aiplatform_v1 as vertex

from tests.unit.localcloud.conftest import TRAINER, Cloud, command_job, wait_until

JobState = vertex.JobState


def test_a_program_that_is_not_there_fails_the_job(cloud: Cloud) -> None:
    job = cloud.run(command_job("no-such-program"))
    assert "could not be started: no-such-program: No such file" in job.error.message


def test_an_image_without_a_command_fails_and_says_why(cloud: Cloud) -> None:
    job = cloud.run(command_job())
    assert job.state == JobState.JOB_STATE_FAILED
    assert "what its ENTRYPOINT does is unknown" in job.error.message


OUTPUT = {"base_output_directory": {"output_uri_prefix": "gs://artifacts/run"}}


def test_a_missing_output_bucket_fails_the_job(cloud: Cloud) -> None:
    job = cloud.run(command_job("true", service_account=TRAINER, **OUTPUT))
    assert job.error.message.startswith("The specified bucket does not exist: gs://artifacts")


def test_what_a_running_job_writes_appears_in_the_bucket(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    script = "echo one >/gcs/out/one; sleep 600"
    cloud.submit(command_job("sh", "-c", script))
    wait_until(lambda: out.get_blob("one"))
