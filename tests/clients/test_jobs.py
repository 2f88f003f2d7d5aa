"""gcloud, Google's Python SDK and curl submit jobs in the local shell as they do to Google."""

from __future__ import annotations

import json
import re

import pytest

from localgcp import lifecycle
from localgcp.runner.gcsfuse import storage_client
from tests.clients.conftest import PROGRAMS, PROJECT, TRAINER, Shell, until_ended
from vertex_training.naming import local_project_number

pytestmark = pytest.mark.timeout(600)
TEXTS = PROGRAMS["jobs"]


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """The project as its stack would make it."""
    shell.make_project(TRAINER, "trained")
    (shell.folder / "vertex_job.yaml").write_text(TEXTS["CONFIG"])
    (shell.folder / "submit.py").write_text(TEXTS["SUBMIT"])
    (shell.folder / "task.py").write_text(TEXTS["TASK"])


def test_gcloud_creates_streams_and_cancels_a_job(shell: Shell, gcloud: str) -> None:
    """The commands of a published tutorial, with its filter and its format."""
    done = shell.run(
        "JOB_NAME=tuning-1; REGION=us-central1;"
        "gcloud ai custom-jobs create --region=${REGION} --display-name=${JOB_NAME}"
        "    --config=vertex_job.yaml --project=local-training &&"
        'JOB_ID=$(gcloud ai custom-jobs list --region=${REGION} --filter="displayName=${JOB_NAME}"'
        '    --format="value(name.scope(customJobs))") &&'
        f"{until_ended('gcloud ai custom-jobs describe ${JOB_ID} --region=${REGION}')} &&"
        "gcloud ai custom-jobs stream-logs ${JOB_ID} --region=${REGION} --polling-interval=1 &&"
        "gcloud ai custom-jobs describe ${JOB_ID} --region=${REGION} --format=json &&"
        "gcloud ai custom-jobs cancel ${JOB_ID} --region=${REGION}"
    )
    lines = [line.split("\t")[-1] for line in done.stdout.splitlines()]
    assert "hello" in lines
    assert "the end" in lines
    described = json.loads(re.search(r"^\{.*^\}", done.stdout, re.DOTALL | re.MULTILINE)[0])  # pyright: ignore[reportOptionalSubscript]
    assert described["displayName"] == "tuning-1"
    assert described["state"] == "JOB_STATE_SUCCEEDED"
    assert "is submitted successfully" in done.stderr
    assert "Request to cancel CustomJob" in done.stderr


def test_gcloud_reads_googles_words_about_a_mistake(shell: Shell, gcloud: str) -> None:
    done = shell.run("gcloud ai custom-jobs describe 1 --region=us-central1", 1)
    assert "NOT_FOUND" in done.stderr
    assert "The CustomJob does not exist" in done.stderr


def test_the_sdk_runs_a_job_and_training_pipelines_without_settings_of_ours(shell: Shell) -> None:
    info = lifecycle.running(shell.home)
    assert info is not None
    lines = shell.run("python submit.py").stdout.splitlines()
    assert lines.count("PIPELINE_STATE_SUCCEEDED") == 2
    made = storage_client(f"http://127.0.0.1:{info.storage_port}").bucket("trained")
    for name in ("run/made.txt", "run/script.txt"):
        assert made.blob(name).download_as_bytes() == b"made\n"
    number = local_project_number(PROJECT)
    job = re.compile(rf"projects/{number}/locations/us-central1/customJobs/\d+")
    assert any(map(job.fullmatch, lines))


def test_curl_submits_a_job(shell: Shell, curl: str) -> None:
    pool = {
        "replicaCount": 1,
        "machineSpec": {"machineType": "n1-standard-4"},
        "containerSpec": {"imageUri": "python:3.11", "command": ["true"]},
    }
    body = {"displayName": "curl", "jobSpec": {"workerPoolSpecs": [pool]}}
    (shell.folder / "body.json").write_text(json.dumps(body))
    url = f"http://$VERTEX_EMULATOR_HOST/v1/projects/{PROJECT}/locations/us-central1/customJobs"
    submit = f'curl -sS --fail -d @body.json -H "Content-Type: application/json" "{url}"'
    done = shell.run(f'{submit} && {submit} && curl -sS "{url}?pageSize=1"')
    assert '"state": "JOB_STATE_QUEUED"' in done.stdout
    assert '"nextPageToken"' in done.stdout


@pytest.mark.nightly
def test_gcloud_creates_streams_and_cancels_a_tuning_job(shell: Shell, gcloud: str) -> None:
    (shell.folder / "tuning.yaml").write_text(TEXTS["TUNING_CONFIG"])
    done = shell.run(
        "REGION=us-central1; CALL='gcloud ai hp-tuning-jobs';"
        "$CALL create --region=$REGION --display-name=tuned --config=tuning.yaml"
        "    --max-trial-count=4 --parallel-trial-count=2 &&"
        'ID=$($CALL list --region=$REGION --filter="displayName=tuned"'
        '    --format="value(name.scope(hyperparameterTuningJobs))") &&'
        f"{until_ended('$CALL describe $ID --region=$REGION')} &&"
        "$CALL stream-logs $ID --region=$REGION --polling-interval=1 &&"
        "$CALL describe $ID --region=$REGION --format=json &&"
        "$CALL cancel $ID --region=$REGION"
    )
    assert "submitted successfully" in done.stderr
    lines = {line.split("\t")[-1] for line in done.stdout.splitlines()}
    assert {f"trial {n}: --units {n}" for n in range(1, 5)} <= lines
    described = json.loads(re.search(r"^\{.*^\}", done.stdout, re.DOTALL | re.MULTILINE)[0])  # pyright: ignore[reportOptionalSubscript]
    assert described["state"] == "JOB_STATE_SUCCEEDED"
    values = [each["finalMeasurement"]["metrics"][0]["value"] for each in described["trials"]]
    assert values == [1, 2, 3, 4]


def test_the_sdk_runs_a_tuning_job_and_reads_its_trials(shell: Shell) -> None:
    (shell.folder / "tune.py").write_text(TEXTS["TUNE"])
    lines = shell.run("python tune.py").stdout.splitlines()
    assert lines[-2:] == ["JOB_STATE_SUCCEEDED", "True 3"]
