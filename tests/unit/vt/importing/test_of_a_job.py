"""A job that ran becomes a job of a stack, without what the service or a stack added to it."""

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.localcloud.batch.conftest import job as batch_job
from tests.unit.localcloud.batch.conftest import make_jobs
from tests.unit.localcloud.conftest import PROJECT, command_job
from vertex_training.naming import local_project_number
from vertex_training_cli.cli import app

__all__ = ["make_jobs"]


@pytest.fixture
def project(cloud, tmp_path, monkeypatch):
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{cloud.port}")
    root = tmp_path / "checkout"
    (root / "jobs").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(
        f"config:\n  gcp:project: {PROJECT}\n  gcp:region: us-central1\n"
        f'  vertex-training:projectNumber: "{local_project_number(PROJECT)}"\n'
        "  vertex-training:serviceAccounts: {trainer: {}}\n"
    )
    monkeypatch.chdir(root)
    return root


def test_a_job_that_ran_is_imported_by_its_id(project, cloud):
    body = command_job("true")
    body["labels"] = {"vt-request-id": "abc123", "vt-job": "old", "vt-stack": "x", "team": "ml"}
    body["display_name"] = "x-old"
    prefix = "gs://bucket-of-another/out/abc123"
    body["job_spec"]["base_output_directory"] = {"output_uri_prefix": prefix}
    id_ = cloud.submit(body).name.rpartition("/")[2]
    done = CliRunner().invoke(app, ["import", "--job", id_, "--write"])
    assert done.exit_code == 0, done.output
    message = yaml.safe_load((project / "jobs" / "old.yaml").read_text())
    assert message["labels"] == {"team": "ml"}
    spec = message["jobSpec"]
    assert spec["serviceAccount"] == "${serviceAccounts.old}"
    where = spec["baseOutputDirectory"]["outputUriPrefix"]
    assert where == "${buckets.bucket-of-another}/out/${job.requestId}"
    assert "state" not in message


def test_existing_batch_job_is_refused(project, make_jobs, monkeypatch):
    jobs = make_jobs(start=False)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", jobs.address)
    name = jobs.create(batch_job({"container": {"image_uri": "python:3.11"}}), "old").name
    done = CliRunner().invoke(app, ["import", "--job", name])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"vt import: Batch job at {name} is not imported. Write a job")


def test_a_job_that_is_not_there_is_one_line(project):
    done = CliRunner().invoke(app, ["import", "--job", "123"])
    assert done.exit_code == 2
    assert done.stderr.startswith("vt import: job projects/")
    assert "customJobs/123 does not exist" in done.stderr


def test_buckets_accounts_and_the_clients_folder_of_a_job_are_the_stacks_own(project, cloud):
    stack = project / "Pulumi.local.yaml"
    stack.write_text(stack.read_text() + "  vertex-training:buckets: {data: {}}\n")
    body = command_job("echo")
    names = f"{PROJECT}-data-local", f"{PROJECT}-staging-local"
    body["job_spec"]["worker_pool_specs"][0]["container_spec"]["args"] = [
        f"--in=gs://{names[0]}/a.csv", f"--code=gs://{names[1]}/b"
    ]  # fmt: skip
    prefix = "gs://acme-out/aiplatform-custom-job-2026-01-02-03:04:05.678"
    body["job_spec"]["base_output_directory"] = {"output_uri_prefix": prefix}
    id_ = cloud.submit(body).name.rpartition("/")[2]
    done = CliRunner().invoke(app, ["import", "--job", id_, "--name", "again", "--write"])
    assert done.exit_code in (0, 1), done.output
    spec = yaml.safe_load((project / "jobs/again.yaml").read_text())
    spec = spec.get("jobSpec", spec)
    pool = spec["workerPoolSpecs"][0]
    assert pool["replicaCount"] == 1
    assert pool["containerSpec"]["args"] == [
        "--in=${buckets.data}/a.csv", f"--code=gs://{names[1]}/b"
    ]  # fmt: skip
    folder = "${buckets.acme-out}/${job.name}/${job.requestId}"
    assert spec["baseOutputDirectory"] == {"outputUriPrefix": folder}
    buckets = yaml.safe_load(stack.read_text())["config"]["vertex-training:buckets"]
    assert set(buckets) == {"data", "acme-out"}
