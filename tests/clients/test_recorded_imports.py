"""``vt import --run``: Google's own SDK, unchanged, sends to nobody, and the jobs are what it sent.

Each story runs the real SDK in a process of its own (two seconds of processor time to import it).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

STACK = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
  vertex-training:buckets: {data: {}}
"""
#: Everything that reading could only guess: a list that grows, a branch, an argument, a default of
#: the environment, a loop, a script, a search, an upload, and a method that is no import's.
SUBMIT = """\
import argparse, os
from google.cloud import aiplatform, storage
from google.cloud.aiplatform import hyperparameter_tuning as hpt

parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, default=4)
options = parser.parse_args()
aiplatform.init(project="acme-ml", location="europe-west4", staging_bucket="gs://acme-staging")
storage.Client().bucket("acme-data").blob("in/a.csv").upload_from_string("x\\n1\\n")
pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/i/x:1",
                           "args": ["--data=gs://acme-data/in/a.csv"],
                           "env": [{"name": "SEED", "value": os.environ.get("SEED", "0")},
                                   {"name": "WANDB_API_KEY", "value": os.environ["KEY"]}]}}
pools = [pool]
if options.nodes > 1:
    pools.append({**pool, "replica_count": options.nodes - 1})
else:
    pools[0]["machine_spec"]["machine_type"] = "n1-highmem-8"
job = aiplatform.CustomJob("ddp", pools, labels={"team": "x"})
job.run(service_account="t@acme-ml.iam.gserviceaccount.com", timeout=3600)
print("state", job.state.name)
open("task.py", "w").write("print(1)\\n")
aiplatform.CustomTrainingJob(
    "scripted", "task.py", requirements=["pandas==2.0"],
    container_uri="us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest",
).run(args=["--epochs", "2"], replica_count=2)
inner = aiplatform.CustomJob("inner", pools[:1])
aiplatform.HyperparameterTuningJob(
    "search", inner, metric_spec={"acc": "maximize"}, max_trial_count=4, parallel_trial_count=2,
    parameter_spec={"lr": hpt.IntegerParameterSpec(1, 8, "linear")}).run()
aiplatform.Model.upload(display_name="m", serving_container_image_uri="us-docker.pkg.dev/a/b/c:1")
"""
KEY = "0123456789abcdef0123456789abcdef01234567"


def run_import(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """``vt import`` in a folder, with a login of the real cloud in the environment."""
    done = subprocess.run(
        [sys.executable, "-m", "vertex_training_cli.cli", "import", *arguments],
        cwd=folder,
        env={**os.environ, "KEY": KEY, "GOOGLE_APPLICATION_CREDENTIALS": "/nonexistent/key.json"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def read(file: Path) -> dict:
    return yaml.safe_load(file.read_text())


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The repository after the import, and what the command printed."""
    root = tmp_path_factory.mktemp("recorded")
    (root / "jobs").mkdir()
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    (root / "submit.py").write_text(SUBMIT)
    command = f"SEED=7 {sys.executable} submit.py --nodes 3"
    return root, run_import(root, "--run", command, "--write")


def test_the_pools_are_those_that_the_branch_and_the_argument_made(imported) -> None:
    root, _ = imported
    pools = read(root / "jobs/ddp.yaml")["jobSpec"]["workerPoolSpecs"]
    assert [pool["replicaCount"] for pool in pools] == [1, 2]
    assert {pool["machineSpec"]["machineType"] for pool in pools} == {"n1-standard-4"}
    assert pools[0]["containerSpec"]["env"][0] == {"name": "SEED", "value": "7"}


def test_options_of_the_run_and_the_clients_own_folder_are_in_the_job_file(imported) -> None:
    root, _ = imported
    job = read(root / "jobs/ddp.yaml")
    assert job["labels"] == {"team": "x"}
    assert job["jobSpec"]["scheduling"] == {"timeout": "3600s"}
    folder = "${buckets.acme-staging}/${job.name}/${job.requestId}"
    assert job["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": folder}


def test_a_script_that_the_client_packaged_is_a_package_of_the_stack(imported) -> None:
    root, _ = imported
    task = read(root / "jobs/scripted.yaml")["workerPoolSpecs"][1]["pythonPackageSpec"]
    assert task["packageUris"] == ["${packages.scripted}"]
    assert (root / "jobs/scripted/scripted.py").read_text() == "print(1)\n"
    assert (root / "jobs/scripted/scripted.requirements.txt").read_text() == "pandas==2.0\n"


def test_a_search_is_a_tuning_job_and_its_inner_job_is_none(imported) -> None:
    root, _ = imported
    search = read(root / "jobs/search.yaml")
    assert search["studySpec"]["parameters"][0]["integerValueSpec"] == {
        "minValue": 1,
        "maxValue": 8,
    }
    assert (search["maxTrialCount"], search["parallelTrialCount"]) == (4, 2)
    config = read(root / "Pulumi.local.yaml")["config"]
    assert config["vertex-training:tuning"] == {"search": {"file": "jobs/search.yaml"}}
    assert set(config["vertex-training:jobs"]) == {"ddp", "scripted"}


def test_objects_that_the_code_uploads_are_named(imported) -> None:
    root, done = imported
    assert "the code uploads to gs://acme-data are not imported (in/a.csv)" in done.stderr
    assert not (root / "jobs/data").exists()


def test_a_secret_is_neither_shown_nor_written(imported) -> None:
    root, done = imported
    assert KEY not in done.stdout + done.stderr
    for file in root.rglob("*.yaml"):
        assert KEY not in file.read_text()
    assert "${secrets.wandb-api-key}" in (root / "jobs/ddp.yaml").read_text()


def test_what_could_not_be_captured_is_said(imported) -> None:
    _, done = imported
    assert "state JOB_STATE_SUCCEEDED" in done.stderr  # the command's own output goes there
    assert "called google.cloud.aiplatform.v1.ModelService/UploadModel, which --run" in done.stderr
    assert "ended with exit code 1" in done.stderr
    assert (
        "the source submits the job to europe-west4; the stack runs jobs in us-central1"
    ) in done.stderr


def test_a_folder_without_a_stack_gets_job_files_alone(tmp_path: Path) -> None:
    (tmp_path / "submit.py").write_text(SUBMIT.partition("print(")[0])
    done = run_import(tmp_path, "--run", f"{sys.executable} submit.py --nodes 1", "--write")
    [pool] = read(tmp_path / "jobs/ddp.yaml")["jobSpec"]["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": "n1-highmem-8"}
    assert pool["containerSpec"]["args"] == ["--data=gs://acme-data/in/a.csv"]
    assert pool["containerSpec"]["env"][1]["value"] == "<REMOVED_SECRET>"
    assert "this folder has no stack" in done.stderr
    assert not list(tmp_path.glob("Pulumi*"))


def test_a_command_that_sends_nothing_is_refused_with_its_exit_code(tmp_path: Path) -> None:
    done = run_import(tmp_path, "--run", "echo hello; exit 3", code=2)
    assert "the command ended with exit code 3 and submitted no job" in done.stderr
    assert done.stdout == ""


def test_a_python_that_nothing_leads_here_finds_no_login_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "submit.py").write_text(SUBMIT)
    done = run_import(tmp_path, "--run", f"{sys.executable} -I submit.py", code=2)
    assert "no-credentials.json was not found" in done.stderr


@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not here")
def test_a_search_that_gcloud_of_the_beta_track_sends_is_imported_with_its_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.yaml").write_text(
        "studySpec:\n  metrics: [{metricId: a, goal: MAXIMIZE}]\n  parameters:\n"
        "  - {parameterId: p, integerValueSpec: {minValue: 1, maxValue: 9}}\ntrialJobSpec:\n"
        "  workerPoolSpecs:\n  - machineSpec: {machineType: n1-standard-4}\n    replicaCount: 1\n"
        "    containerSpec: {imageUri: us-docker.pkg.dev/a/b/c:1}\n"
    )
    call = "gcloud beta ai hp-tuning-jobs create --region=us-central1 --project=acme"
    run_import(tmp_path, "--run", f"{call} --display-name=Study --config=t.yaml", "--write")
    search = read(tmp_path / "jobs/study.yaml")
    assert (search["displayName"], search["maxTrialCount"]) == ("Study", 1)
    [pool] = search["trialJobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["imageUri"] == "us-docker.pkg.dev/a/b/c:1"


#: A job of Vertex AI, then a Batch job.
ON_BATCH = """\
from google.cloud import aiplatform, batch_v1

pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
        "container_spec": {"image_uri": "us-docker.pkg.dev/acme-ml/i/x:1"}}
aiplatform.init(project="acme-ml", location="europe-west4", staging_bucket="gs://acme-staging")
aiplatform.CustomJob("ddp", [pool]).submit()
batch_v1.BatchServiceClient().create_job(
    parent="projects/acme-ml/locations/europe-west4", job=batch_v1.Job(), job_id="bare")
"""


def batch_remark(call: str) -> str:
    """Return the remark on a call that creates a Batch job."""
    return f"Batch job at {call} is not imported. Write a job file with `backend: batch`"


def test_batch_job_of_the_client_is_named_beside_the_imported_job(tmp_path: Path) -> None:
    (tmp_path / "submit.py").write_text(ON_BATCH)
    done = run_import(tmp_path, "--run", f"{sys.executable} submit.py", "--write")
    assert (tmp_path / "jobs/ddp.yaml").exists()
    assert batch_remark("google.cloud.batch.v1.BatchService/CreateJob") in done.stderr


@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed")
def test_batch_job_of_gcloud_is_named(tmp_path: Path) -> None:
    command = (
        "gcloud batch jobs submit train --project acme --location us-central1 "
        "--container-image-uri=us-docker.pkg.dev/acme-ml/i/x:1"
    )
    done = run_import(tmp_path, "--run", command, code=2)
    assert batch_remark("POST /v1/projects/acme/locations/us-central1/jobs") in done.stderr
