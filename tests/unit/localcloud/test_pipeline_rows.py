"""Training pipelines as rows, and each as the message that follows from its job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.protobuf import json_format

from localgcp.errors import ApiError
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.pipelines import PipelineRecord, PipelineService, PipelineTable
from localgcp.vertex import checks
from localgcp.vertex.records import JobState, JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

NUMBER = project_number(PROJECT)
PARENT = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{NUMBER}/locations/us-central1"
TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
TIME = "2026-01-02T03:04:05Z"
POOL: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": "us-docker.pkg.dev/x/y/z:1", "command": ["true"]},
}
SENT: dict[str, Any] = {
    "displayName": "p",
    "labels": {"a": "b"},
    "encryptionSpec": {"kmsKeyName": "k"},
    "trainingTaskDefinition": TASK,
    "trainingTaskInputs": {"workerPoolSpecs": [POOL]},
}


class Pipelines:
    def __init__(self, path: Path) -> None:
        self.store, self.jobs, self.table = Store(path), JobTable(path), PipelineTable(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        self.asked: list[tuple[str, str]] = []
        self.service = PipelineService(JobService(self.store, self.jobs, self), self.table)

    def submit(self, job_id: str) -> None:
        self.asked.append(("submit", job_id))

    def cancel(self, job_id: str) -> None:
        self.asked.append(("cancel", job_id))

    def create(self, **changes: Any) -> dict[str, Any]:
        pipeline = vertex.TrainingPipeline()
        body = {key: value for key, value in {**SENT, **changes}.items() if value is not None}
        json_format.ParseDict(body, vertex.TrainingPipeline.pb(pipeline))
        request = vertex.CreateTrainingPipelineRequest(parent=PARENT, training_pipeline=pipeline)
        return body_of(self.service.create_training_pipeline(request))

    def get(self, id_: str) -> dict[str, Any]:
        request = vertex.GetTrainingPipelineRequest(name=f"{PARENT}/trainingPipelines/{id_}")
        return body_of(self.service.get_training_pipeline(request))

    def list(self, **request: Any) -> tuple[list[str], str]:
        asked = vertex.ListTrainingPipelinesRequest(parent=PARENT, **request)
        found = self.service.list_training_pipelines(asked)
        ids = [each.name.rpartition("/")[2] for each in found.training_pipelines]
        return ids, found.next_page_token


def body_of(pipeline: Any) -> dict[str, Any]:
    return json_format.MessageToDict(vertex.TrainingPipeline.pb(pipeline))


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args, **more)
    return error.value.code.name, error.value.message


@pytest.fixture
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipelines:
    monkeypatch.setattr(checks, "_installed_limits", tuple)
    return Pipelines(tmp_path / "cloud.sqlite")


def row(id_: str = "1", time: str = TIME, **changes: Any) -> PipelineRecord:
    return replace(
        PipelineRecord(id_, NUMBER, "us-central1", "42", {"displayName": "p"}, time), **changes
    )


def test_times_and_the_error_are_the_jobs(pipelines: Pipelines) -> None:
    pipelines.table.insert(row())
    job = replace(
        job_row("42", {}, state=JobState.FAILED), start_time=TIME, end_time=TIME, error_code=3,
        error_message=None,
    )  # fmt: skip
    pipelines.jobs.insert(job)
    found = pipelines.get("1")
    assert (found["startTime"], found["endTime"], found["error"]) == (TIME, TIME, {"code": 3})


def test_a_pipeline_without_its_job_has_failed(pipelines: Pipelines) -> None:
    pipelines.table.insert(row())
    assert pipelines.get("1") == {
        "name": f"{PLACE}/trainingPipelines/1",
        "displayName": "p",
        "createTime": TIME,
        "state": "PIPELINE_STATE_FAILED",
        "error": {"code": 5, "message": "The CustomJob of the pipeline was deleted."},
    }
    request = vertex.CancelTrainingPipelineRequest(name=f"{PARENT}/trainingPipelines/1")
    pipelines.service.cancel_training_pipeline(request)
    assert pipelines.asked == []
    pipelines.jobs.insert(job_row("42", {}))
    pipelines.service.cancel_training_pipeline(request)
    assert pipelines.asked == [("cancel", "42")]


def test_inputs_that_are_no_job_are_told(pipelines: Pipelines) -> None:
    code, text = refused(pipelines.create, trainingTaskInputs={"none": 1})
    assert code == "INVALID_ARGUMENT"
    assert text.startswith("training_task_inputs: ")


def test_pipelines_are_listed_page_by_page(pipelines: Pipelines) -> None:
    rows = [row(str(number)) for number in range(102)]
    for each in rows[:3]:
        pipelines.table.insert(each)
    assert pipelines.list() == (["2", "1", "0"], "")
    assert pipelines.list(page_size=2) == (["2", "1"], "2")
    assert pipelines.list(page_size=2, page_token="2") == (["0"], "")
    assert pipelines.list(page_size=3) == (["2", "1", "0"], "")
    assert pipelines.list(page_size=-1) == (["2", "1", "0"], "")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipelines.table, "list", lambda *_: rows)
        patched.setattr(pipelines.jobs, "get", lambda _id: None)
        for size in (0, 1000):
            found, token = pipelines.list(page_size=size)
            assert (len(found), token) == (100, "100")
    assert refused(pipelines.list, filter="x") == (
        "INVALID_ARGUMENT", "filter: the local cloud lists all training pipelines.",
    )  # fmt: skip
    for token in ("-1", "1234567890"):
        assert refused(pipelines.list, page_token=token) == (
            "INVALID_ARGUMENT", f"Invalid page token: {token!r}.",
        )  # fmt: skip
