"""Jobs as clients of the job service see them: their states, errors and logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.runner import gcsfuse, hosts
from tests.unit.localcloud.conftest import TRAINER, Cloud, command_job, wait_until

JobState = vertex.JobState


def many(job: dict[str, Any], replicas: int) -> dict[str, Any]:
    job["job_spec"]["worker_pool_specs"][0]["replica_count"] = replicas
    return job


OLD_IMAGE = "us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-0:latest"
OWN_IMAGE = "us-central1-docker.pkg.dev/local-training/training/x:1"


def task(kind: str, **spec: Any) -> dict[str, Any]:
    job = command_job()
    pool = job["job_spec"]["worker_pool_specs"][0]
    del pool["container_spec"]
    pool[kind] = spec
    return job


@pytest.mark.parametrize(
    ("job", "state", "code", "text"),
    [
        (command_job("true"), "SUCCEEDED", 0, ""),
        (command_job("sh", "-c", "exit 3"), "FAILED", 3,
         "exited with a non-zero status of 3. Termination reason: Error."),
        (command_job("no-such-program"), "FAILED", 3,
         "The replica workerpool0-0 could not be started: no-such-program: No such file"),
        (command_job(), "FAILED", 9, "the ENTRYPOINT is unknown"),
        (many(command_job("true"), 17), "FAILED", 9, "at most 16"),
        (task("container_spec", image_uri=OWN_IMAGE), "FAILED", 9,
         "cannot run here: no container registry is installed"),
        (command_job("sleep", "600", scheduling={"timeout": {"seconds": 1}}), "CANCELLED", 1,
         "The job was cancelled: it ran longer than scheduling.timeout (1s)."),
        (command_job("true", service_account=TRAINER,
                     base_output_directory={"output_uri_prefix": "gs://artifacts/run"}),
         "FAILED", 5, "The specified bucket does not exist: gs://artifacts"),
    ],
)  # fmt: skip
def test_a_job_ends_in_its_state_with_its_error(
    cloud: Cloud, job: dict[str, Any], state: str, code: int, text: str
) -> None:
    ended = cloud.run(job)
    assert (ended.state.name, ended.error.code) == (f"JOB_STATE_{state}", code), ended.error
    assert text in ended.error.message
    assert f"job {ended.name.rpartition('/')[2]} {state}" in cloud.log(ended)


def test_package_job_of_an_image_without_stand_in_is_refused(cloud_with_storage: Cloud) -> None:
    cloud_with_storage.bucket("box").blob("a.tar.gz").upload_from_string(b"")
    spec = {"executor_image_uri": OLD_IMAGE, "package_uris": ["gs://box/a.tar.gz"]}
    ended = cloud_with_storage.run(task("python_package_spec", python_module="a", **spec))
    assert (ended.state.name, ended.error.code) == ("JOB_STATE_FAILED", 9)
    assert f"no stand-in for the executor image {OLD_IMAGE}" in ended.error.message


def test_a_stockout_fails_a_job_and_delays_one_that_may_wait(cloud: Cloud) -> None:
    faults = FaultTable(cloud.home.faults)
    faults.add(Fault.parse(service="jobs", kind="stockout"))
    refused = cloud.run(command_job("true"))
    assert (refused.state.name, refused.error.code) == ("JOB_STATE_FAILED", 8)
    assert "STOCKOUT: Resources are insufficient in region: us-central1." in refused.error.message
    faults.add(Fault.parse(service="jobs", kind="stockout", seconds=0.5))
    assert cloud.run(command_job("true")).state == JobState.JOB_STATE_SUCCEEDED


def test_queued_and_running_jobs_are_cancelled(make_cloud: Callable[..., Cloud]) -> None:
    cloud = make_cloud(slots=1)
    names = [cloud.submit(command_job("sleep", "600")).name for _ in range(2)]

    def states() -> list[str]:
        return [cloud.client.get_custom_job(name=name).state.name[10:] for name in names]

    wait_until(lambda: states() == ["RUNNING", "QUEUED"])
    for name in reversed(names):
        cloud.client.cancel_custom_job(name=name)
    wait_until(lambda: states() == ["CANCELLED", "CANCELLED"])
    assert cloud.client.get_custom_job(name=names[1]).error.message == "The job was cancelled."


def test_a_stopped_cloud_fails_running_jobs_and_keeps_queued_ones(
    make_cloud: Callable[..., Cloud],
) -> None:
    first = make_cloud(slots=1)
    running, queued = (first.submit(command_job(*c)).name for c in (("sleep", "600"), ("true",)))
    wait_until(lambda: first.client.get_custom_job(name=running).state == 3)
    first.stop()
    second = make_cloud(slots=1)
    failed = second.client.get_custom_job(name=running)
    assert (failed.state.name, failed.error.code) == ("JOB_STATE_FAILED", 14)
    assert "The local cloud was stopped while the job ran" in failed.error.message
    wait_until(lambda: second.client.get_custom_job(name=queued).state == 4)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the ``/gcs`` of a machine on which the user may write to ``/``.

    Jobs have none of their own there.
    """
    monkeypatch.setattr(hosts, "has_mounts", lambda: False)
    folder = tmp_path / "root" / "gcs"
    monkeypatch.setattr(gcsfuse, "ROOT", folder)
    return folder


def test_a_job_that_writes_outside_of_every_bucket_fails_and_names_the_file(
    cloud: Cloud, root: Path
) -> None:
    path = root / "box" / "model.pt"
    job = cloud.run(command_job("sh", "-c", f"mkdir -p {path.parent} && echo model > {path}"))
    assert job.state.name == "JOB_STATE_FAILED"
    assert str(path) in job.error.message
    assert "not into a bucket" in job.error.message
    assert "AIP_MODEL_DIR" in cloud.log(job)


def test_a_job_that_only_reads_there_succeeds(cloud: Cloud, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "mine.txt").write_text("a file of the user")
    job = cloud.run(command_job("cat", str(root / "mine.txt")))
    assert job.state.name == "JOB_STATE_SUCCEEDED"
