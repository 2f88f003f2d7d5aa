"""Training pipelines over a job service that runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.pipelines import (
    PipelineService,
    PipelineTable,
    pipeline_service,
    training_pipeline,
)
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService

PROJECT = "local-training"
PARENT = f"projects/{PROJECT}/locations/us-central1"
DEFINITION = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
#: As the SDK sends them: names of the message, whole numbers as floats, nothing as null.
INPUTS: dict[str, Any] = {
    "worker_pool_specs": [
        {
            "replica_count": 1.0,
            "machine_spec": {"machine_type": "n1-standard-4"},
            "container_spec": {"image_uri": "python:3.11", "command": ["true"], "args": []},
        }
    ],
    "base_output_directory": {"output_uri_prefix": "gs://box/out"},
    "scheduling": {"timeout": None, "restart_job_on_worker_restart": False, "strategy": None},
}


@dataclass
class Scheduler:
    submitted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def submit(self, job_id: str) -> None:
        self.submitted.append(job_id)

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)


@dataclass
class Cloud:
    service: PipelineService
    jobs: JobTable
    scheduler: Scheduler
    home: Home

    def create(self, **changes: Any) -> training_pipeline.TrainingPipeline:
        body = {"displayName": "t", "trainingTaskDefinition": DEFINITION,
                "trainingTaskInputs": INPUTS, "labels": {"team": "ml"}}  # fmt: skip
        body = {key: value for key, value in (body | changes).items() if value is not None}
        pipeline = training_pipeline.TrainingPipeline()
        json_format.ParseDict(body, training_pipeline.TrainingPipeline.pb(pipeline))
        return self.service.create_training_pipeline(
            pipeline_service.CreateTrainingPipelineRequest(
                parent=PARENT, training_pipeline=pipeline
            )
        )

    def get(self, name: str) -> training_pipeline.TrainingPipeline:
        request = pipeline_service.GetTrainingPipelineRequest(name=name)
        return self.service.get_training_pipeline(request)


@pytest.fixture
def cloud(home: Home) -> Cloud:
    store, jobs, scheduler = Store(home.database), JobTable(home.database), Scheduler()
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    service = PipelineService(JobService(store, jobs, scheduler), PipelineTable(home.database))
    return Cloud(service, jobs, scheduler, home)


def test_a_pipeline_whose_job_was_deleted_says_so(cloud: Cloud) -> None:
    made = cloud.create()
    cloud.jobs.delete(cloud.jobs.list()[0].job_id)
    assert "was deleted" in cloud.get(made.name).error.message


def test_cancelling_cancels_the_job_once(cloud: Cloud) -> None:
    made = cloud.create()
    request = pipeline_service.CancelTrainingPipelineRequest(name=made.name)
    for _ in range(2):
        cloud.service.cancel_training_pipeline(request)
    assert cloud.scheduler.cancelled == cloud.scheduler.submitted


def test_pipelines_are_listed_page_by_page(cloud: Cloud) -> None:
    names = {cloud.create(displayName=name).name for name in "abc"}
    request = pipeline_service.ListTrainingPipelinesRequest(parent=PARENT, page_size=2)
    first = cloud.service.list_training_pipelines(request)
    request.page_token = first.next_page_token
    second = cloud.service.list_training_pipelines(request)
    assert [len(first.training_pipelines), len(second.training_pipelines)] == [2, 1]
    assert {each.name for each in (*first.training_pipelines, *second.training_pipelines)} == names


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"trainingTaskDefinition": "gs://x/automl_1.yaml"}, "UNIMPLEMENTED", "custom tasks"),
        ({"trainingTaskDefinition": None}, "UNIMPLEMENTED", "custom tasks"),
        ({"modelToUpload": {"displayName": "m"}}, "UNIMPLEMENTED", "no pipeline that uploads"),
        ({"displayName": None}, "INVALID_ARGUMENT", "display_name"),
        ({"trainingTaskInputs": None}, "INVALID_ARGUMENT", ""),
        ({"trainingTaskInputs": "text"}, "INVALID_ARGUMENT", "training_task_inputs"),
    ],
)  # fmt: skip
def test_what_does_not_run_here_is_refused_and_nothing_is_submitted(
    cloud: Cloud, changes: dict[str, Any], code: str, text: str
) -> None:
    with pytest.raises(ApiError) as error:
        cloud.create(**changes)
    assert error.value.code is grpc.StatusCode[code]
    assert text in error.value.message
    assert not cloud.scheduler.submitted


@pytest.mark.parametrize(
    "name", ["", "x", f"{PARENT}/customJobs/1", f"{PARENT}/trainingPipelines/1"]
)
def test_a_name_that_is_none_is_refused(cloud: Cloud, name: str) -> None:
    with pytest.raises(ApiError):
        cloud.get(name)
