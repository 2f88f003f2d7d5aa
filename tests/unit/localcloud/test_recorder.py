"""Requests of a program are recorded, have succeeded at once, and nothing runs."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport
from google.cloud.aiplatform_v1.services.pipeline_service.transports.grpc import (
    PipelineServiceGrpcTransport,
)
from google.protobuf import json_format

from localgcp.clients import python_clients
from localgcp.recorder import RecordedRequest, Recorder
from localgcp.runner.gcsfuse import storage_client

PARENT = "projects/p/locations/us-central1"
TRIALS: Any = {
    "display_name": "study",
    "max_trial_count": 2,
    "parallel_trial_count": 1,
    "study_spec": {
        "metrics": [{"metric_id": "loss", "goal": "MINIMIZE"}],
        "parameters": [
            {"parameter_id": "lr", "double_value_spec": {"min_value": 0.1, "max_value": 1.0}}
        ],
    },
    "trial_job_spec": {"worker_pool_specs": [{"replica_count": 1}]},
}

PIPELINE: Any = {
    "display_name": "auto",
    "training_task_definition": "gs://google-cloud-aiplatform/schema/custom_task_1.0.0.yaml",
    "training_task_inputs": {"workerPoolSpecs": []},
}

#: What a shell has.
OURS = {
    "PATH": "/bin", "PYTHONPATH": "/own", "PULUMI_ACCESS_TOKEN": "token",
    "GOOGLE_APPLICATION_CREDENTIALS": "/ours.json",
}  # fmt: skip


def as_json(message: Any) -> dict[str, Any]:
    """Return a message of Google's client in the API's JSON form."""
    return json_format.MessageToDict(type(message).pb(message))


class Sent:
    """A recorder and the official clients in front of it."""

    def __init__(self, made: Recorder) -> None:
        self.recorder = made
        self.env = made.environment(OURS)
        self.address, self.storage = (
            self.env[python_clients.VERTEX],
            self.env[python_clients.STORAGE],
        )
        self.channel = grpc.insecure_channel(self.address)
        self.jobs = vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=self.channel))
        self.pipelines = vertex.PipelineServiceClient(
            transport=PipelineServiceGrpcTransport(channel=self.channel)
        )


@pytest.fixture
def sent(tmp_path: Path) -> Iterator[Sent]:
    with Recorder(tmp_path / "recorded") as started:
        made = Sent(started)
        yield made
        made.channel.close()


def test_jobs_of_each_kind_are_taken_in_their_order_and_have_succeeded(sent: Sent) -> None:
    spec = {"worker_pool_specs": [{"replica_count": 1}]}
    custom_job: Any = {"display_name": "titanic", "job_spec": spec}
    job = sent.jobs.create_custom_job(parent=PARENT, custom_job=custom_job)
    study = sent.jobs.create_hyperparameter_tuning_job(
        parent=PARENT, hyperparameter_tuning_job=TRIALS
    )
    pipeline = sent.pipelines.create_training_pipeline(parent=PARENT, training_pipeline=PIPELINE)
    pools: dict[str, Any] = {"workerPoolSpecs": [{"replicaCount": "1"}]}
    tuning = as_json(vertex.HyperparameterTuningJob(TRIALS))
    auto = as_json(vertex.TrainingPipeline(PIPELINE))
    assert sent.recorder.requests == [
        RecordedRequest("CustomJob", PARENT, {"displayName": "titanic", "jobSpec": pools}),
        RecordedRequest("HyperparameterTuningJob", PARENT, tuning),
        RecordedRequest("TrainingPipeline", PARENT, auto),
    ]
    succeeded = vertex.JobState.JOB_STATE_SUCCEEDED
    assert (job.state, study.state, job.display_name) == (succeeded, succeeded, "titanic")
    assert pipeline.state == vertex.PipelineState.PIPELINE_STATE_SUCCEEDED
    assert job.create_time == job.start_time == job.end_time == job.update_time
    assert job.name.startswith(f"{PARENT}/customJobs/")
    assert study.name.startswith(f"{PARENT}/hyperparameterTuningJobs/")
    assert pipeline.name.startswith(f"{PARENT}/trainingPipelines/")
    # Code that waits, or lists, goes on.
    assert sent.jobs.get_custom_job(name=job.name) == job
    assert sent.jobs.get_hyperparameter_tuning_job(name=study.name) == study
    assert sent.pipelines.get_training_pipeline(name=pipeline.name) == pipeline
    assert [*sent.jobs.list_custom_jobs(parent=PARENT)] == [job]
    assert [*sent.jobs.list_hyperparameter_tuning_jobs(parent=PARENT)] == [study]
    assert [*sent.pipelines.list_training_pipelines(parent=PARENT)] == [pipeline]
    assert [*sent.jobs.list_custom_jobs(parent="projects/q/locations/us-central1")] == []
    sent.jobs.cancel_custom_job(name=job.name)
    sent.jobs.cancel_hyperparameter_tuning_job(name=study.name)
    assert len(sent.recorder.requests) == 3
    assert sent.recorder.refused == []


def test_a_bucket_is_there_as_soon_as_it_is_named(sent: Sent) -> None:
    client = storage_client(sent.storage)
    client.bucket("data-1").blob("a/b.txt").upload_from_string("content")
    assert [blob.name for blob in client.list_blobs("data-1")] == ["a/b.txt"]
    assert (sent.recorder.buckets / "data-1" / "a" / "b.txt").read_text() == "content"
    assert [*client.list_blobs("other.bucket")] == []
    assert sorted(each.name for each in sent.recorder.buckets.iterdir() if each.is_dir()) == [
        "data-1", "other.bucket",
    ]  # fmt: skip


def test_what_else_is_called_is_refused_and_noted(sent: Sent) -> None:
    with pytest.raises(exceptions.GoogleAPICallError):
        sent.jobs.delete_custom_job(name=f"{PARENT}/customJobs/1")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://{sent.address}/v1/projects/p/topics?a=b", timeout=20)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://{sent.address}/{'x' * 400}", timeout=20)
    by_grpc, *by_rest = sent.recorder.refused
    assert "DeleteCustomJob" in by_grpc
    assert by_rest == ["GET /v1/projects/p/topics", f"GET /{'x' * 299}"]
    assert sent.recorder.requests == []
