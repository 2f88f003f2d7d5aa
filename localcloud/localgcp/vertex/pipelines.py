"""``google.cloud.aiplatform.v1.PipelineService`` for pipelines with one CustomJob.

The task's inputs are a CustomJobSpec. Data sets and models to upload are refused.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import grpc
from google.protobuf import json_format

from localgcp.apis import field_rules
from localgcp.apis.client import Api, custom_job, pipeline_service, training_pipeline
from localgcp.apis.server import invalid_argument, invalid_fields
from localgcp.errors import ApiError
from localgcp.vertex.collections import (
    Body,
    Collection,
    ResourceReader,
    ResourceTable,
    serves,
    to_body,
)
from localgcp.vertex.records import JobRecord, JobState, JobTable, new_id, now
from localgcp.vertex.service import JobService

#: Tasks that run a CustomJob; google/cloud/aiplatform/schema.py of the SDK.
_CUSTOM_TASK: Final = re.compile(
    r"gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_[\d.]+\.yaml"
)
_KEPT: Final = (
    *("displayName", "labels", "encryptionSpec"),
    *("trainingTaskDefinition", "trainingTaskInputs"),
)
_MISSING: Final = {
    "modelToUpload": "a pipeline that uploads a model. Upload the model in another request",
    "inputDataConfig": "managed data sets. Pass the address of the data as an argument",
}
PIPELINES: Final = Collection(
    training_pipeline.TrainingPipeline, "training_pipeline", "trainingPipelines", pipeline_service
)


class PipelineTable(ResourceTable):
    """Reads and writes pipelines. A pipeline's state is the state of its CustomJob."""

    def __init__(self, jobs: JobTable) -> None:
        super().__init__(jobs.path)
        self._jobs = jobs

    def get(self, name: str) -> Body | None:
        body = super().get(name)
        return body and self._with_progress(body)

    def list(self, parent: str) -> list[Body]:
        return [self._with_progress(body) for body in super().list(parent)]

    def _with_progress(self, body: Body) -> Body:
        return body | _progress(self._jobs.get(body["jobId"]))


@serves(PIPELINES)
class PipelineService(ResourceReader):
    """Serves training pipelines that run one CustomJob."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "pipeline_service")

    def __init__(self, jobs: JobService) -> None:
        self._jobs, self._table = jobs, PipelineTable(jobs.jobs)
        super().__init__(jobs.store, jobs.operations, self._table)

    def create(self, parent: str, sent: Any, _id: str, context: Any) -> Body:
        """Create the pipeline's CustomJob, then the pipeline. Raises ApiError."""
        body, place = to_body(PIPELINES, sent), self.place(parent, context)
        job = self._jobs.create(parent, _job_of(body))
        name = f"{place}/{PIPELINES.segment}/{new_id()}"
        kept = {key: body[key] for key in _KEPT if key in body}
        id_ = job["name"].rpartition("/")[2]
        self._table.put({**kept, "name": name, "createTime": now(), "jobId": id_})
        return self.find(name, context)


def _job_of(sent: Body) -> custom_job.CustomJob:
    definition = sent.get("trainingTaskDefinition", "")
    if not _CUSTOM_TASK.fullmatch(definition):
        problem = f"the local cloud runs only custom tasks, not {definition!r}"
        raise ApiError(grpc.StatusCode.UNIMPLEMENTED, f"training_task_definition: {problem}.")
    for key, feature in _MISSING.items():
        if key in sent:
            text = f"{key}: the local cloud does not support {feature}."
            raise ApiError(grpc.StatusCode.UNIMPLEMENTED, text)
    body = {"displayName": f"{sent['displayName']}-custom-job"}
    body |= {key: sent[key] for key in ("labels", "encryptionSpec") if key in sent}
    job = custom_job.CustomJob()
    try:
        spec = {"jobSpec": sent.get("trainingTaskInputs", {})}
        json_format.ParseDict({**body, **spec}, custom_job.CustomJob.pb(job))
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise invalid_argument(f"training_task_inputs: {error}") from None
    # The pipeline's message does not define the fields of the job, so the job is checked here.
    body = json_format.MessageToDict(custom_job.CustomJob.pb(job))
    if errors := [*field_rules.errors("aiplatform.v1.GoogleCloudAiplatformV1CustomJob", body)]:
        raise invalid_fields(errors)
    return job


def _progress(job: JobRecord | None) -> Body:
    if job is None:
        error = {"code": 5, "message": "The CustomJob of the pipeline was deleted."}
        return {"state": "PIPELINE_STATE_FAILED", "error": error}
    state = "PENDING" if job.state is JobState.QUEUED else job.state.word
    progress: Body = {
        "state": f"PIPELINE_STATE_{state}",
        "updateTime": job.update_time,
        "trainingTaskMetadata": {"backingCustomJob": job.name},
    }
    times = {"startTime": job.start_time, "endTime": job.end_time}
    progress |= {key: time for key, time in times.items() if time}
    if job.error_code is not None:
        progress["error"] = {"code": job.error_code, "message": job.error_message or ""}
    return progress
