"""Jobs that run: as processes, with their grants, their mounts, their ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp import processes
from localgcp.runner import substitutes
from localgcp.runner.gang import hosts
from tests.unit.localcloud.conftest import TRAINER, Cloud, command_job, wait_until

JobState = vertex.JobState


def test_a_job_sees_only_what_the_service_and_this_machine_set(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "1")
    spec = command_job(sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))")
    spec["job_spec"]["worker_pool_specs"][0]["container_spec"]["env"] = [
        {"name": "MINE", "value": "of $(CLOUD_ML_JOB_ID)"}
    ]
    job = cloud.run(spec)
    job_id = job.name.rpartition("/")[2]
    printed = next(line for line in cloud.log(job).splitlines() if line.startswith("{"))
    # Where gcloud is installed, the job gets what leads it to the local cloud.
    names = {name for name in vars_of(printed) if not name.startswith(("CLOUDSDK_", "BOTO_"))}
    assert names - {"LC_CTYPE"} == {
        "CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID", "CLUSTER_SPEC", "PATH", "HOME", "TMPDIR",
        "LANG", "PYTHONUNBUFFERED", "STORAGE_EMULATOR_HOST", "MINE",
        "VERTEX_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST", "PYTHONPATH",
    }  # fmt: skip
    assert vars_of(printed)["MINE"] == f"of {job_id}"


def vars_of(line: str) -> dict[str, str]:
    import json

    return json.loads(line)


def test_a_non_zero_exit_fails_the_job_with_the_services_message(cloud: Cloud) -> None:
    job = cloud.run(command_job("sh", "-c", "echo broken; exit 3"))
    assert job.state == JobState.JOB_STATE_FAILED
    assert job.error.message.startswith(
        "The replica workerpool0-0 exited with a non-zero status of 3. Termination reason: Error."
    )
    assert "broken\n" in cloud.log(job)


def test_a_signal_is_named(cloud: Cloud) -> None:
    job = cloud.run(command_job("sh", "-c", "kill -9 $$", scheduling={"disable_retries": True}))
    assert "non-zero status of 137. Termination reason: SIGKILL" in job.error.message


def test_a_program_that_is_not_there_fails_the_job(cloud: Cloud) -> None:
    job = cloud.run(command_job("no-such-program"))
    assert "could not be started: no-such-program: No such file" in job.error.message


def test_an_image_without_a_command_fails_and_says_why(cloud: Cloud) -> None:
    job = cloud.run(command_job())
    assert job.state == JobState.JOB_STATE_FAILED
    assert "what its ENTRYPOINT does is unknown" in job.error.message


def test_an_unknown_executor_image_fails_and_names_the_known_ones(
    cloud_with_storage: Cloud,
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("packages")
    package = {
        "executor_image_uri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-9.py310:latest",
        "package_uris": ["gs://packages/a.tar.gz"],
        "python_module": "a",
    }
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "python_package_spec": package,
    }
    job = cloud.run({"display_name": "x", "job_spec": {"worker_pool_specs": [pool]}})
    assert (
        "tf-cpu.2-9.py310:latest has no stand-in here (the nearest is tf-cpu.2-16.py310). "
        "Hint: `vt local start --prebuilt nearest` takes it" in job.error.message
    )


def test_a_job_past_its_timeout_is_cancelled_with_a_message(cloud: Cloud) -> None:
    job = cloud.run(command_job("sleep", "600", scheduling={"timeout": {"seconds": 1}}))
    assert job.state == JobState.JOB_STATE_CANCELLED
    assert "longer than scheduling.timeout (1s)" in job.error.message


def test_cancel_ends_the_whole_group_even_if_it_ignores_sigterm(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localgcp.runner.replica.GRACE_SECONDS", 0.2)
    script = "trap '' TERM; sleep 600 & echo $! >pids; echo $$ >>pids; wait; sleep 600"
    name = cloud.submit(command_job("sh", "-c", script)).name
    folder = cloud.home.jobs / name.rpartition("/")[2] / "work"

    def pids() -> list[int]:
        file = folder / "pids"
        found = [int(line) for line in file.read_text().split()] if file.exists() else []
        return found if len(found) == 2 else []

    wait_until(pids)
    cloud.client.cancel_custom_job(name=name)
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=name).state == JobState.JOB_STATE_CANCELLED)
    for pid in pids():
        wait_until(lambda pid=pid: processes.start_time(pid) is None)
    assert processes.live_children(cloud.home.children) == []


OUTPUT = {"base_output_directory": {"output_uri_prefix": "gs://artifacts/run"}}


def test_a_missing_output_bucket_fails_the_job(cloud: Cloud) -> None:
    job = cloud.run(command_job("true", service_account=TRAINER, **OUTPUT))
    assert job.error.message.startswith("The specified bucket does not exist: gs://artifacts")


@pytest.mark.parametrize("role", ["roles/storage.objectUser", "roles/storage.objectAdmin"])
def test_the_account_needs_a_grant_to_write_its_output(
    cloud_with_storage: Cloud, role: str
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("artifacts")
    spec = command_job("true", service_account=TRAINER, **OUTPUT)
    cloud.grant("b/artifacts", "roles/storage.objectViewer")
    refused = cloud.run(spec)
    assert refused.state == JobState.JOB_STATE_FAILED
    assert refused.error.code == 7
    assert f"{TRAINER} does not have storage.objects.create access" in refused.error.message
    cloud.grant("b/artifacts", role)
    assert cloud.run(spec).state == JobState.JOB_STATE_SUCCEEDED


@pytest.mark.parametrize("place", ["args", "env"])
def test_a_bucket_the_code_would_be_refused_fails_the_job(
    cloud_with_storage: Cloud, place: str
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("data")
    uri = "gs://data/in/train.npz"
    spec = command_job("echo", *([f"--train={uri}"] if place == "args" else []))
    spec["job_spec"]["service_account"] = TRAINER
    if place == "env":
        container = spec["job_spec"]["worker_pool_specs"][0]["container_spec"]
        container["env"] = [{"name": "TRAIN", "value": uri}]
    refused = cloud.run(spec)
    assert refused.state == JobState.JOB_STATE_FAILED
    assert "403 for what the job names" in refused.error.message
    assert f"{TRAINER} does not have storage.objects.get access to gs://data/in/train.npz" in (
        refused.error.message
    )
    assert refused.error.message.endswith("roles/storage.objectViewer on bucket data.")
    cloud.grant("b/data", "roles/storage.objectViewer")
    assert cloud.run(spec).state == JobState.JOB_STATE_SUCCEEDED


def test_gcs_is_a_folder_whose_files_are_objects(
    cloud_with_storage: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where this system gives a job no ``/gcs`` of its own."""
    monkeypatch.setattr(hosts, "has_mounts", lambda: False)
    cloud = cloud_with_storage
    data, out = cloud.bucket("data"), cloud.bucket("out")
    data.blob("in/a.txt").upload_from_string("from the bucket")
    cloud.grant("b/data", "roles/storage.objectViewer")
    cloud.grant("b/out", "roles/storage.objectUser")
    script = (
        "cat /gcs/data/in/a.txt; mkdir -p /gcs/out/d; echo written >/gcs/out/d/f.txt; "
        "echo no >/gcs/data/in/b.txt"
    )
    job = cloud.run(command_job("sh", "-c", script, service_account=TRAINER))
    assert job.state == JobState.JOB_STATE_SUCCEEDED, job.error.message
    assert "from the bucket" in cloud.log(job)
    written = out.get_blob("d/f.txt")
    assert written.download_as_bytes() == b"written\n"
    assert written.md5_hash
    assert "/gcs/data/in/b.txt: not uploaded, storage.objects.create denied." in cloud.log(job)
    assert [blob.name for blob in data.list_blobs()] == ["in/a.txt"]


def test_what_a_running_job_writes_appears_in_the_bucket(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    script = "echo one >/gcs/out/one; sleep 600"
    cloud.submit(command_job("sh", "-c", script))
    wait_until(lambda: out.get_blob("one"))


def test_what_a_cancelled_job_writes_at_sigterm_is_in_the_bucket(
    cloud_with_storage: Cloud,
) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    script = (
        "trap 'echo saved >/gcs/out/saved; exit 0' TERM; echo begun >/gcs/out/begun; "
        "while :; do sleep 0.1; done"
    )
    name = cloud.submit(command_job("sh", "-c", script)).name
    wait_until(lambda: out.get_blob("begun"))
    cloud.client.cancel_custom_job(name=name)
    get = cloud.client.get_custom_job
    wait_until(lambda: get(name=name).state == JobState.JOB_STATE_CANCELLED)
    assert out.blob("saved").download_as_bytes() == b"saved\n"


def test_no_more_jobs_run_at_once_than_there_are_slots(make_cloud: Callable[..., Cloud]) -> None:
    cloud = make_cloud(slots=2)
    names = [cloud.submit(command_job("sleep", "600")).name for _ in range(3)]

    def states() -> list[Any]:
        return [cloud.client.get_custom_job(name=name).state for name in names]

    wait_until(lambda: states()[:2] == [JobState.JOB_STATE_RUNNING] * 2)
    assert states()[2] == JobState.JOB_STATE_QUEUED
    cloud.client.cancel_custom_job(name=names[0])
    wait_until(lambda: states()[2] == JobState.JOB_STATE_RUNNING)


def test_a_job_leaves_no_process_and_no_note(cloud: Cloud) -> None:
    job = cloud.run(command_job("sh", "-c", "sleep 600 & echo $!"))
    pid = int(next(line for line in cloud.log(job).splitlines() if line.isdigit()))
    wait_until(lambda: processes.start_time(pid) is None)
    assert os.listdir(cloud.home.children) == []


def test_a_command_on_the_host_leaves_a_note_of_the_image_it_did_not_run_in(cloud: Cloud) -> None:
    job = cloud.run(command_job("true"))
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    number = job.name.rpartition("/")[2]
    assert substitutes.read(cloud.home, number) == ["on this host, not in python:3.11"]


@pytest.mark.parametrize(
    ("image", "version", "text"),
    [
        ("pytorch-xla.2-4.py310:latest", "3.11", "on Python 3.11, not the image's 3.10"),
        ("sklearn-cpu.1-6", "3.12", "on Python 3.12, not the image's 3.10"),
        ("tf-cpu.2-17.py311", "3.11", ""),
        ("pytorch-xla.2-4.py310", "3.10", ""),
    ],
)
def test_another_python_than_the_image_has_is_a_substitute(
    image: str, version: str, text: str
) -> None:
    assert substitutes.python_for(image, version) == text
