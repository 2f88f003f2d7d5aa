"""``JobService`` of ``google.cloud.aiplatform.v1``, and the TensorBoard instances of jobs.

``PipelineService`` serves pipelines with one CustomJob. The inputs of a pipeline's task are a
CustomJobSpec. Data sets and models to upload are refused.

States: QUEUED, PENDING while replicas are prepared, RUNNING, then SUCCEEDED, FAILED or CANCELLED.
Cancellation is asynchronous.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import grpc
from google.longrunning import operations_pb2
from google.protobuf import json_format

from localgcp.apis import field_rules
from localgcp.apis.client import (
    Api,
    custom_job,
    job_service,
    pipeline_service,
    tensorboard,
    tensorboard_service,
    training_pipeline,
)
from localgcp.apis.server import failed_precondition, invalid_argument, invalid_fields, not_found
from localgcp.errors import ApiError
from localgcp.inventory.store import TENSORBOARD, Store, StoredResource, project_number
from localgcp.vertex.checks import check_custom_job, resolve_parent
from localgcp.vertex.collections import (
    NAME,
    USERS,
    VIEWERS,
    Body,
    Collection,
    ResourceReader,
    ResourceTable,
    newest_page,
    resolve_place,
    serves,
    to_body,
)
from localgcp.vertex.operations import OperationTable
from localgcp.vertex.records import (
    LIVE_STATES,
    JobRecord,
    JobState,
    JobTable,
    RecordTable,
    new_id,
    now,
)

VERTEX_JOBS: Final = Api("google.cloud.aiplatform_v1", "job_service")
CUSTOM_JOBS: Final = Collection(custom_job.CustomJob, "custom_job", "customJobs", job_service)
_NAME: Final = re.compile(
    r"(?P<parent>projects/[^/]+/locations/[^/]+)/(?P<segment>\w+)/(?P<id>\d+)"
)
_OUTPUT_ONLY: Final = (
    *("name", "state", "createTime", "startTime", "endTime", "updateTime", "error"),
    *("webAccessUris", "satisfiesPzs", "satisfiesPzi", "trials"),
)
_FIELDS: Final = re.compile(
    r"display_name|state|create_time|start_time|end_time|update_time|labels\.[\w-]+"
)
#: States in which a job can be cancelled.
CANCELLABLE: Final = tuple(state for state in LIVE_STATES if state is not JobState.CANCELLING)
_R = TypeVar("_R", bound=JobRecord)


class Scheduler(Protocol):
    """Runs new jobs, and ends jobs in state CANCELLING (``localgcp.runner.job``)."""

    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


class JobCollection(Generic[_R]):
    """Checks requests for jobs of one type and stores the jobs; a scheduler runs them."""

    collection: Collection
    first: ClassVar = JobState.QUEUED

    def __init__(self, store: Store, table: RecordTable[_R], scheduler: Scheduler) -> None:
        self.store, self.table, self.scheduler = store, table, scheduler
        self.operations = OperationTable(table.path)

    def check(self, body: Body, project: str, region: str) -> None:
        """Raise ApiError for a job (JSON form) that the service or this machine refuses."""
        raise NotImplementedError

    def create(self, parent: str, sent: Any, _id: str, context: Any) -> Body:
        """Store and submit a job. Raises ApiError."""
        project, region = resolve_place(self.store, parent, parent, context)
        body = to_body(self.collection, sent)
        body = {key: value for key, value in body.items() if key not in _OUTPUT_ONLY}
        self.check(body, project, region)
        record = self.table.rows.type.new(project, region, body, self.first)
        self.table.insert(record)
        self.scheduler.submit(record.job_id)
        return message_body(record)

    def find(self, name: str, context: Any) -> Body:
        return message_body(self.record(name, context, VIEWERS))

    def record(self, name: str, context: Any, roles: frozenset[str] = USERS) -> _R:
        """Return the record of the job with this name. Raises ApiError."""
        kind = self.collection.message.__name__
        match = _NAME.fullmatch(name)
        if match is None or match["segment"] != self.collection.segment:
            raise invalid_argument(f"Invalid resource name: {name!r}; expected a {kind}.")
        project, region = resolve_place(self.store, match["parent"], name, context, roles)
        job = self.table.get(match["id"])
        if job is None or (job.project, job.region) != (project, region):
            raise not_found(name, kind)
        return job

    def cancel(self, name: str, context: Any) -> None:
        """Cancel a job; an ended or cancelled job stays unchanged."""
        job_id = self.record(name, context).job_id
        if self.table.move(job_id, JobState.CANCELLING, only_from=CANCELLABLE):
            self.scheduler.cancel(job_id)

    def delete(self, name: str, context: Any) -> operations_pb2.Operation:
        """Delete an ended job. Raises ApiError."""
        job = self.record(name, context)
        if not job.state.terminal:
            # The API does not document this refusal, which keeps running jobs visible.
            kind = self.collection.message.__name__
            text = f"The {kind} is in state {job.state} and cannot be deleted; cancel it first."
            raise failed_precondition(f"{text} ({job.name})")
        self.table.delete(job.job_id)
        return self.operations.deleted(job.name)

    def page(self, request: Any, context: Any) -> tuple[list[Body], str]:
        """Return a page of jobs, newest first, and the next page's token. Raises ApiError."""
        parent = request.parent
        project, region = resolve_place(self.store, parent, parent, context, VIEWERS)
        jobs = self.table.list(project_number(project), region)
        scope = f"{self.table.rows.table}:{project}/{region}"
        return newest_page([message_body(job) for job in jobs], _FIELDS, request, scope)


@serves(CUSTOM_JOBS)
class JobService(JobCollection[JobRecord]):
    """Serves CustomJobs, and the long-running operations of all services."""

    api: ClassVar = VERTEX_JOBS

    def __init__(
        self,
        store: Store,
        jobs: JobTable,
        scheduler: Scheduler,
        refusal: Callable[[Mapping[str, Any]], str | None] = lambda _spec: None,
    ) -> None:
        """``refusal`` returns why this machine cannot run a job's ``jobSpec``, or None."""
        super().__init__(store, jobs, scheduler)
        self.jobs, self.refusal = jobs, refusal

    def check(self, body: Body, project: str, region: str) -> None:
        check_custom_job(self.store, self.jobs, body, project, region)
        if text := self.refusal(body["jobSpec"]):
            raise failed_precondition(text)

    def get_operation(
        self, request: operations_pb2.GetOperationRequest
    ) -> operations_pb2.Operation:
        if stored := self.operations.get(request.name):
            return stored
        raise not_found(request.name, "Operation")

    def list_operations(
        self, request: operations_pb2.ListOperationsRequest
    ) -> operations_pb2.ListOperationsResponse:
        """Return the operations on a resource or in a location."""
        match = NAME.fullmatch(request.name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {request.name!r}.")
        project, region = resolve_parent(self.store, match[1])
        if request.filter:
            raise invalid_argument("filter: the local cloud cannot filter operations.")
        target = f"projects/{project_number(project)}/locations/{region}{match[2]}"
        return operations_pb2.ListOperationsResponse(operations=self.operations.list(target))


def message_body(record: JobRecord) -> dict[str, Any]:
    """Return a job of any type in the API's JSON form, with null for unset fields."""
    body = {
        **record.request,
        "name": record.name,
        "state": record.state.value,
        "createTime": record.create_time,
        "updateTime": record.update_time,
        "startTime": record.start_time,
        "endTime": record.end_time,
    }
    if record.error_code is not None:
        body["error"] = {"code": record.error_code, "message": record.error_message or ""}
    return body


INSTANCES: Final = Collection(
    tensorboard.Tensorboard, "tensorboard", "tensorboards", tensorboard_service
)


@serves(INSTANCES)
class TensorboardService(ResourceReader):
    """Serves TensorBoard instances, which the gcp plugin creates and deletes."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "tensorboard_service")

    def __init__(self, jobs: JobService) -> None:
        super().__init__(jobs.store, jobs.operations, InstanceTable(jobs.store))


class InstanceTable:
    """Reads TensorBoard instances from the gcp plugin's store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> Body | None:
        resource = self._store.get(TENSORBOARD, name)
        return resource and _instance(resource)

    def list(self, parent: str) -> list[Body]:
        resources = self._store.list(TENSORBOARD)
        return [_instance(r) for r in resources if r.id.rpartition("/")[0] == parent]


def _instance(resource: StoredResource) -> Body:
    """Return an instance without the plugin's empty values, which JSON numbers cannot have."""
    fields = {key: value for key, value in resource.outputs.items() if value not in ("", None)}
    return {**fields, "name": resource.id}


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
        job = self._jobs.create(parent, _job_of(body), "", context)
        name = f"{place}/{PIPELINES.segment}/{new_id()}"
        kept = {key: body[key] for key in _KEPT if key in body}
        id_ = job["name"].rpartition("/")[2]
        self._table.put({**kept, "name": name, "createTime": now(), "jobId": id_})
        return self.find(name, context)

    def cancel(self, name: str, context: Any) -> None:
        """Cancel the pipeline's CustomJob; a second call has no effect."""
        task = self.find(name, context).get("trainingTaskMetadata", {})
        if job := task.get("backingCustomJob"):
            self._jobs.cancel(job, context)


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
