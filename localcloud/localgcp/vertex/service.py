"""The methods of ``google.cloud.aiplatform.v1.JobService`` this cloud has, on the API's own types.

States move as the service's: QUEUED, PENDING while the replica is prepared, RUNNING while its
code runs, then SUCCEEDED, FAILED or CANCELLED; cancelling is asynchronous. Names carry the project
number; requests may name a project by id or number.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Protocol, TypeVar

import grpc
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2, json_format

from localgcp.apis.client import Api
from localgcp.apis.messages import custom_job, job_service, operation
from localgcp.apis.refusals import failed_precondition, invalid_argument, not_found
from localgcp.errors import ApiError, FilterError
from localgcp.inventory.store import Store, project_number
from localgcp.vertex import filters
from localgcp.vertex.checks import check_custom_job, resolve_parent
from localgcp.vertex.operations import OperationTable
from localgcp.vertex.records import LIVE_STATES, JobRecord, JobState, JobTable, RecordTable

VERTEX_JOBS: Final = Api("google.cloud.aiplatform_v1", "job_service")
_JOB_NAME: Final = re.compile(r"(?P<parent>projects/[^/]+/locations/[^/]+)/customJobs/(?P<id>\d+)")
OUTPUT_ONLY: Final = (
    *("name", "state", "createTime", "startTime", "endTime", "updateTime", "error"),
    *("webAccessUris", "satisfiesPzs", "satisfiesPzi"),
)
_TARGET: Final = re.compile(r"(projects/[^/]+/locations/[^/]+)((?:/[^/]+)*)")
_DONE: Final = re.compile(r"(?:done[=:](true|false))?", re.IGNORECASE)
_MAX_PAGE: Final = 100
#: How long a call waits for an operation; it holds one of the server's threads.
_MAX_WAIT: Final = 30.0
#: States in which a job can be asked to end.
CANCELLABLE: Final = tuple(state for state in LIVE_STATES if state is not JobState.CANCELLING)
_R = TypeVar("_R", bound=JobRecord)


class Scheduler(Protocol):
    """Runs jobs; see ``localgcp.runner.scheduler``."""

    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


class JobService:
    """CustomJobs, and the operations that delete jobs."""

    api: ClassVar = VERTEX_JOBS

    def __init__(
        self,
        store: Store,
        jobs: JobTable,
        scheduler: Scheduler,
        refusal: Callable[[Mapping[str, Any]], str | None] = lambda _spec: None,
    ) -> None:
        """``refusal`` is why this machine cannot run a job's ``jobSpec``, or None."""
        self.store = store
        self.refusal = refusal
        self.jobs = jobs
        self.scheduler = scheduler
        self.operations = OperationTable(jobs.path)

    def create_custom_job(
        self, request: job_service.CreateCustomJobRequest
    ) -> custom_job.CustomJob:
        project, region = resolve_parent(self.store, request.parent)
        sent = json_format.MessageToDict(custom_job.CustomJob.pb(request.custom_job))
        body = {key: value for key, value in sent.items() if key not in OUTPUT_ONLY}
        check_custom_job(self.store, self.jobs, body, project, region)
        if text := self.refusal(body["jobSpec"]):
            raise failed_precondition(text)
        record = JobRecord.new(project, region, body, JobState.QUEUED)
        self.jobs.insert(record)
        self.scheduler.submit(record.job_id)
        return to_message(record)

    def get_custom_job(self, request: job_service.GetCustomJobRequest) -> custom_job.CustomJob:
        return to_message(self._find(request.name))

    def list_custom_jobs(
        self, request: job_service.ListCustomJobsRequest
    ) -> job_service.ListCustomJobsResponse:
        page, token = list_page(self.store, self.jobs, request)
        return job_service.ListCustomJobsResponse(
            custom_jobs=[to_message(job) for job in page], next_page_token=token
        )

    def cancel_custom_job(self, request: job_service.CancelCustomJobRequest) -> empty_pb2.Empty:
        job = self._find(request.name)
        # A job that ended, or is being cancelled, stays as it is: repeating is no error.
        if self.jobs.move(job.job_id, JobState.CANCELLING, only_from=CANCELLABLE):
            self.scheduler.cancel(job.job_id)
        return empty_pb2.Empty()

    def delete_custom_job(
        self, request: job_service.DeleteCustomJobRequest
    ) -> operations_pb2.Operation:
        job = self._find(request.name)
        if not job.state.terminal:
            # Not described by the API. Refusing keeps a running job findable.
            text = f"The CustomJob is in state {job.state} and cannot be deleted; cancel it first."
            raise ApiError(grpc.StatusCode.FAILED_PRECONDITION, f"{text} ({job.name})")
        self.jobs.delete(job.job_id)
        return self.deleted(job)

    def deleted(self, job: JobRecord) -> operations_pb2.Operation:
        """The operation, which is done, that deleted a job of any type."""
        return self.finish(job.name, empty_pb2.Empty(), operation.DeleteOperationMetadata())

    def finish(self, name: str, response: Any, metadata: Any) -> operations_pb2.Operation:
        """An operation on the resource ``name``, which is done, with messages of the client."""
        return self.operations.finish(name, response, metadata)

    def get_operation(
        self, request: operations_pb2.GetOperationRequest
    ) -> operations_pb2.Operation:
        return _existing(request.name, self.operations.get(request.name))

    def wait_operation(
        self, request: operations_pb2.WaitOperationRequest
    ) -> operations_pb2.Operation:
        """The operation when it is done, or as it is when the time is over."""
        asked = request.timeout.ToSeconds() if request.HasField("timeout") else _MAX_WAIT
        found = self.operations.wait(request.name, min(max(asked, 0), _MAX_WAIT))
        return _existing(request.name, found)

    def list_operations(
        self, request: operations_pb2.ListOperationsRequest
    ) -> operations_pb2.ListOperationsResponse:
        """All operations on a resource, or in a location; a filter says ``done`` or not."""
        match = _TARGET.fullmatch(request.name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {request.name!r}.")
        project, region = resolve_parent(self.store, match[1])
        wanted = _DONE.fullmatch(request.filter)
        if wanted is None:
            raise invalid_argument(f"Invalid filter: {request.filter!r}; done=false is one.")
        target = f"projects/{project_number(project)}/locations/{region}{match[2]}"
        found = self.operations.list(target)
        if wanted[1]:
            found = [each for each in found if each.done is (wanted[1].lower() == "true")]
        return operations_pb2.ListOperationsResponse(operations=found)

    def _find(self, name: str) -> JobRecord:
        match = _JOB_NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name!r}; expected a CustomJob.")
        project, region = resolve_parent(self.store, match["parent"])
        job = self.jobs.get(match["id"])
        if job is None or (job.project, job.region) != (project, region):
            raise not_found(name)
        return job


class ListRequest(Protocol):
    """What the requests of ``List…Jobs`` have."""

    parent: str
    filter: str
    page_size: int
    page_token: str


def list_page(store: Store, table: RecordTable[_R], request: ListRequest) -> tuple[list[_R], str]:
    """Jobs of a page, newest first, and the token of the next one. Raises ApiError."""
    project, region = resolve_parent(store, request.parent)
    try:
        test = filters.parse(request.filter)
    except FilterError as error:
        raise invalid_argument(str(error)) from error
    if request.page_size < 0:
        raise invalid_argument(f"page_size must not be negative, got {request.page_size}.")
    text = f"{table.table}:{project}/{region}?{request.filter}"
    query = hashlib.sha256(text.encode()).hexdigest()[:16]
    after = _read_token(request.page_token, query)
    found = [
        job
        for job in table.list(project_number(project), region, filters.label(request.filter))
        if test(job) and (after is None or (job.create_time, job.job_id) < after)
    ]
    size = min(request.page_size or _MAX_PAGE, _MAX_PAGE)
    page, more = found[:size], len(found) > size
    return page, _write_token(page[-1], query) if more else ""


def to_message(record: JobRecord) -> custom_job.CustomJob:
    """The record as the API's CustomJob."""
    job = custom_job.CustomJob()
    json_format.ParseDict(message_body(record), custom_job.CustomJob.pb(job))
    return job


def message_body(record: JobRecord) -> dict[str, Any]:
    """A job of any type in the API's JSON form, which has null for what is not set."""
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


def _existing(name: str, found: operations_pb2.Operation | None) -> operations_pb2.Operation:
    if found is None:
        raise ApiError(grpc.StatusCode.NOT_FOUND, f"The Operation does not exist: {name}")
    return found


def _write_token(last: JobRecord, query: str) -> str:
    return base64.urlsafe_b64encode(
        json.dumps([query, last.create_time, last.job_id]).encode()
    ).decode()


def _read_token(token: str, query: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        made_for, create_time, job_id = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid_argument(f"Invalid page token: {token[:80]!r}.") from error
    if made_for != query:
        raise invalid_argument(
            "The page token belongs to another request: parent and filter must be equal."
        )
    return create_time, job_id
