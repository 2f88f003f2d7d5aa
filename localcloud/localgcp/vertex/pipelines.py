"""``google.cloud.aiplatform.v1.PipelineService`` for pipelines whose task is one CustomJob.

The task's inputs are a CustomJobSpec; the service makes a CustomJob of them and names it in
``trainingTaskMetadata.backingCustomJob``. Data sets, and a model that the pipeline would upload,
are refused: the local cloud has no data sets, and a model is uploaded by itself.
"""

from __future__ import annotations

import builtins
import json
import re
import secrets
import sqlite3
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import grpc
from google.protobuf import empty_pb2, json_format

from localgcp.apis.client import Api
from localgcp.apis.messages import custom_job, job_service, pipeline_service, training_pipeline
from localgcp.apis.refusals import invalid_argument
from localgcp.errors import ApiError
from localgcp.inventory.store import connection, project_number
from localgcp.vertex.checks import resolve_parent
from localgcp.vertex.records import JobRecord, now
from localgcp.vertex.service import JobService

#: Tasks that run a CustomJob; google/cloud/aiplatform/schema.py of the SDK.
_CUSTOM_TASK: Final = re.compile(
    r"gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_[\d.]+\.yaml"
)
_NAME: Final = re.compile(
    r"(?P<parent>projects/[^/]+/locations/[^/]+)/trainingPipelines/(?P<id>\d+)"
)
#: States of a job that a pipeline has by another name.
_STATES: Final = {"QUEUED": "PENDING"}
_MAX_PAGE: Final = 100
_KEPT: Final = (
    *("displayName", "labels", "encryptionSpec"),
    *("trainingTaskDefinition", "trainingTaskInputs"),
)
_MISSING: Final = {
    "modelToUpload": "pipeline that uploads a model: leave out what serves it, and upload it then",
    "inputDataConfig": "managed data sets: pass the data's address as an argument",
}


class PipelineService:
    """``google.cloud.aiplatform.v1.PipelineService``, as far as it runs one CustomJob."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "pipeline_service")

    def __init__(self, jobs: JobService, table: PipelineTable) -> None:
        self._jobs, self._table = jobs, table

    def create_training_pipeline(
        self, request: pipeline_service.CreateTrainingPipelineRequest
    ) -> training_pipeline.TrainingPipeline:
        project, region = resolve_parent(self._jobs.store, request.parent)
        sent = json_format.MessageToDict(
            training_pipeline.TrainingPipeline.pb(request.training_pipeline)
        )
        job = self._jobs.create_custom_job(
            job_service.CreateCustomJobRequest(parent=request.parent, custom_job=_job_of(sent))
        )
        record = PipelineRecord(
            pipeline_id=str(10**18 + secrets.randbelow(8 * 10**18)),
            number=project_number(project),
            region=region,
            job_id=job.name.rpartition("/")[2],
            request={key: sent[key] for key in _KEPT if key in sent},
            create_time=now(),
        )
        self._table.insert(record)
        return self._message(record)

    def get_training_pipeline(
        self, request: pipeline_service.GetTrainingPipelineRequest
    ) -> training_pipeline.TrainingPipeline:
        return self._message(self._find(request.name))

    def list_training_pipelines(
        self, request: pipeline_service.ListTrainingPipelinesRequest
    ) -> pipeline_service.ListTrainingPipelinesResponse:
        project, region = resolve_parent(self._jobs.store, request.parent)
        if request.filter:
            raise invalid_argument("filter: the local cloud lists all training pipelines.")
        if not re.fullmatch(r"\d{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token!r}.")
        begin = int(request.page_token or 0)
        end = begin + min(max(request.page_size, 0) or _MAX_PAGE, _MAX_PAGE)
        found = self._table.list(project_number(project), region)
        return pipeline_service.ListTrainingPipelinesResponse(
            training_pipelines=[self._message(each) for each in found[begin:end]],
            next_page_token=str(end) if end < len(found) else "",
        )

    def cancel_training_pipeline(
        self, request: pipeline_service.CancelTrainingPipelineRequest
    ) -> empty_pb2.Empty:
        record = self._find(request.name)
        job = self._jobs.jobs.get(record.job_id)
        if job is not None:
            self._jobs.cancel_custom_job(job_service.CancelCustomJobRequest(name=job.name))
        return empty_pb2.Empty()

    def _find(self, name: str) -> PipelineRecord:
        match = _NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name!r}; expected a TrainingPipeline.")
        project, region = resolve_parent(self._jobs.store, match["parent"])
        record = self._table.get(match["id"])
        if record is None or (record.number, record.region) != (project_number(project), region):
            text = f"The TrainingPipeline does not exist: {name}"
            raise ApiError(grpc.StatusCode.NOT_FOUND, text)
        return record

    def _message(self, record: PipelineRecord) -> training_pipeline.TrainingPipeline:
        message = training_pipeline.TrainingPipeline()
        body = {**record.request, "name": record.name, "createTime": record.create_time}
        body |= _progress(self._jobs.jobs.get(record.job_id))
        json_format.ParseDict(body, training_pipeline.TrainingPipeline.pb(message))
        return message


def _job_of(sent: dict[str, Any]) -> custom_job.CustomJob:
    """The CustomJob of a pipeline. Raises ApiError."""
    definition = sent.get("trainingTaskDefinition", "")
    if not _CUSTOM_TASK.fullmatch(definition):
        text = f"training_task_definition: the local cloud runs custom tasks, not {definition!r}."
        raise ApiError(grpc.StatusCode.UNIMPLEMENTED, text)
    for key, text in _MISSING.items():
        if key in sent:
            raise ApiError(grpc.StatusCode.UNIMPLEMENTED, f"{key}: the local cloud has no {text}.")
    if not sent.get("displayName"):
        raise invalid_argument("display_name is required.")
    body = {"displayName": f"{sent['displayName']}-custom-job"}
    body |= {key: sent[key] for key in ("labels", "encryptionSpec") if key in sent}
    job = custom_job.CustomJob()
    try:
        spec = {"jobSpec": sent.get("trainingTaskInputs", {})}
        json_format.ParseDict({**body, **spec}, custom_job.CustomJob.pb(job))
    except (json_format.ParseError, ValueError, TypeError) as error:
        raise invalid_argument(f"training_task_inputs: {error}") from None
    return job


def _progress(job: JobRecord | None) -> dict[str, Any]:
    """State, times, error and job of a pipeline."""
    if job is None:
        error = {"code": 5, "message": "The CustomJob of the pipeline was deleted."}
        return {"state": "PIPELINE_STATE_FAILED", "error": error}
    state = _STATES.get(job.state.word, job.state.word)
    found: dict[str, Any] = {
        "state": f"PIPELINE_STATE_{state}",
        "updateTime": job.update_time,
        "trainingTaskMetadata": {"backingCustomJob": job.name},
    }
    found |= {"startTime": job.start_time} if job.start_time else {}
    found |= {"endTime": job.end_time} if job.end_time else {}
    if job.error_code is not None:
        found["error"] = {"code": job.error_code, "message": job.error_message or ""}
    return found


_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS training_pipelines (
    pipeline_id TEXT PRIMARY KEY, number TEXT NOT NULL, region TEXT NOT NULL,
    job_id TEXT NOT NULL, request TEXT NOT NULL, create_time TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class PipelineRecord:
    """One row. Its state is that of the job."""

    pipeline_id: str
    number: str
    """Of the project."""
    region: str
    job_id: str
    request: dict[str, Any]
    """The TrainingPipeline as it was sent, in the API's JSON form."""
    create_time: str

    @property
    def name(self) -> str:
        place = f"projects/{self.number}/locations/{self.region}"
        return f"{place}/trainingPipelines/{self.pipeline_id}"


class PipelineTable:
    """The table ``training_pipelines``; safe across threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def insert(self, record: PipelineRecord) -> None:
        """Add a pipeline."""
        values = [*vars(record).values()]
        values[4] = json.dumps(record.request)
        with self._connect() as db:
            db.execute("INSERT INTO training_pipelines VALUES (?, ?, ?, ?, ?, ?)", values)

    def get(self, pipeline_id: str) -> PipelineRecord | None:
        """The pipeline, or None."""
        query = "SELECT * FROM training_pipelines WHERE pipeline_id = ?"
        with self._connect() as db:
            row = db.execute(query, (pipeline_id,)).fetchone()
        return _record(row) if row else None

    def list(self, number: str, region: str) -> builtins.list[PipelineRecord]:
        """Pipelines of a project and a region, newest first."""
        query = (
            "SELECT * FROM training_pipelines WHERE number = ? AND region = ?"
            " ORDER BY create_time DESC, pipeline_id DESC"
        )
        with self._connect() as db:
            return [_record(row) for row in db.execute(query, (number, region))]

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        return connection(self._path, _SCHEMA)


def _record(row: sqlite3.Row) -> PipelineRecord:
    values = dict(row)
    return PipelineRecord(**{**values, "request": json.loads(values["request"])})
