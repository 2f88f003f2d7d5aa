"""The served methods of ``google.cloud.batch.v1.BatchService``, on the API's own types."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

import grpc
from google.cloud.logging_v2 import types
from google.longrunning import operations_pb2
from google.protobuf import json_format

from localgcp.access import gate
from localgcp.access.callers import Guest
from localgcp.apis.client import Api
from localgcp.apis.messages import batch, batch_job, batch_task
from localgcp.apis.refusals import failed_precondition, invalid_argument
from localgcp.batch import checks, logs
from localgcp.batch.capacity import Ask, Capacity
from localgcp.batch.records import ACTIVE, ENDED, GROUP, BatchJob, BatchTable, BatchTask, State
from localgcp.batch.run import BatchRun
from localgcp.batch.scheduler import BatchScheduler
from localgcp.errors import ApiError, FilterError
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import Store, project_number
from localgcp.runner.programs import CloudHost
from localgcp.vertex import filters
from localgcp.vertex.operations import OperationTable

_NAME: Final = re.compile(
    r"(?P<job>(?P<parent>projects/[^/]+/locations/[^/]+)/jobs/(?P<id>[^/]+))"
    r"(?P<group>/taskGroups/(?P<gid>[^/]+)(?:/tasks/(?P<task>\d{1,9}))?)?"
)
#: Time for which the id of a request is stored (``request_id`` in ``types/batch.py``).
_REMEMBERED: Final = timedelta(minutes=60)
_MAX_PAGE: Final = 1000
_PAGE: Final = 100
_ORDERS: Final = {
    "name": lambda job: job.name,
    "create_time": lambda job: job.create_time,
}
_T = TypeVar("_T")


class BatchService:
    """Jobs and their tasks. Methods raise ApiError."""

    api: ClassVar = Api("google.cloud.batch_v1", "batch_service")

    def __init__(
        self,
        store: Store,
        jobs: BatchTable,
        scheduler: BatchScheduler,
        refusal: Callable[[Mapping[str, Any]], str | None],
    ) -> None:
        """Create the service; ``refusal`` returns why this machine cannot run a ``jobSpec``, or
        None.
        """
        self.store, self.jobs, self.scheduler = store, jobs, scheduler
        self._refusal = refusal
        self.operations = OperationTable(jobs.path)

    def create_job(
        self, request: batch.CreateJobRequest, context: grpc.ServicerContext
    ) -> batch_job.Job:
        """Create a job. The name must be unused; the name of an ended job is still in use."""
        guest = gate.guest_behind(context)
        project, region = checks.resolve_parent(self.store, request.parent)
        checks.check_caller(self.store, guest, project, "batch.jobs.create", request.parent)
        checks.check_ids(request.job_id, request.request_id)
        message = batch_job.Job.pb(request.job)
        if message.ByteSize() > checks.MAX_BYTES:
            raise invalid_argument("The definition of a job can have at most 1 MiB.")
        body = _json(message)  # what the service sets goes over what was sent: _message
        checks.check_job(body, region)
        if text := self._refusal(checks.as_job_spec(body)):
            raise failed_precondition(text)
        parent = f"projects/{project_number(project)}/locations/{region}"
        with self.jobs.lock:
            return self._once(
                request, parent, lambda: self._create(request.job_id, parent, project, body, guest)
            )

    def _create(
        self, job_id: str, parent: str, project: str, body: dict[str, Any], guest: Guest | None
    ) -> batch_job.Job:
        self._sweep()
        uid = f"j-{uuid.uuid4()}"
        name = f"{parent}/jobs/{job_id or f'job-{uid[2:]}'}"
        _complete(body, name, project)
        email = body["allocationPolicy"]["serviceAccount"]["email"]
        checks.check_account(self.store, guest, project, email)
        region, time = parent.rpartition("/")[2], self.jobs.time()
        made = BatchJob(name, uid, project, region, body, State.QUEUED, [], time, time)
        if not self.jobs.insert(made):
            text = f'Resource "{name}" already exists'
            raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
        self.scheduler.wake()
        return self._message(made)

    def get_job(self, request: batch.GetJobRequest, context: grpc.ServicerContext) -> batch_job.Job:
        """Return the job."""
        return self._message(self._find(request.name, context, "batch.jobs.get"))

    def list_jobs(
        self, request: batch.ListJobsRequest, context: grpc.ServicerContext
    ) -> batch.ListJobsResponse:
        """Return a page of a project's jobs, newest first, in one region or in all
        (``locations/-``).
        """
        parent = request.parent
        project, region = checks.resolve_parent(self.store, parent, any_region=True)
        guest = gate.guest_behind(context)
        checks.check_caller(self.store, guest, project, "batch.jobs.list", parent)
        self._sweep()
        field, _, down = request.order_by.partition(" ")
        if (field and field not in _ORDERS) or down not in ("", "desc"):
            raise invalid_argument(f"Invalid order_by: {request.order_by[:80]!r}.")
        test = _test(request.filter, _JOB_FIELDS)
        jobs = [job for job in self.jobs.list(project) if region in ("-", job.region) and test(job)]
        if field:
            jobs.sort(key=_ORDERS[field], reverse=bool(down))
        page, token = _page(jobs, request, f"{parent}?{request.filter}?{request.order_by}")
        return batch.ListJobsResponse(
            jobs=[self._message(job_record) for job_record in page], next_page_token=token
        )

    def cancel_job(
        self, request: batch.CancelJobRequest, context: grpc.ServicerContext
    ) -> operations_pb2.Operation:
        """Cancel a job. An ended job cannot be cancelled; a second call has no effect."""
        with self.jobs.lock:
            job = self._find(request.name, context, "batch.jobs.cancel")
            checks.check_ids("", request.request_id)
            return self._once(request, f"{job.name}:cancel", lambda: self._cancel(job))

    def _cancel(self, job: BatchJob) -> operations_pb2.Operation:
        if job.state is State.CANCELLING and (going := self.operations.get(job.operation)):
            return going
        if not self.jobs.move(job.name, State.CANCELLING, ACTIVE):
            text = f"Job {job.name} is in state {job.state} and cannot be cancelled."
            raise failed_precondition(text)
        made = self._begin(job, "cancel")
        self.scheduler.end(job)
        return self.operations.get(made.name) or made

    def delete_job(
        self, request: batch.DeleteJobRequest, context: grpc.ServicerContext
    ) -> operations_pb2.Operation:
        """Delete a job. A running job ends first; afterwards, the job's name can be used again."""
        with self.jobs.lock:
            parent = _parts(request.name)["parent"]
            project, region = checks.resolve_parent(self.store, parent)
            target = f"projects/{project_number(project)}/locations/{region}/jobs:delete"
            checks.check_ids("", request.request_id)
            return self._once(
                request,
                f"{target}/{request.name.rpartition('/')[2]}",
                lambda: self._delete(self._find(request.name, context, "batch.jobs.delete")),
            )

    def _delete(self, job: BatchJob) -> operations_pb2.Operation:
        if job.state is State.DELETING and (going := self.operations.get(job.operation)):
            return going
        if job.state is State.CANCELLING:  # deleting takes over, and ends the cancelling too
            self.operations.end(job.operation, batch.CancelJobResponse())
        made = self._begin(job, "delete")
        self.jobs.move(job.name, State.DELETING, (*ACTIVE, *ENDED, State.CANCELLING))
        self.scheduler.end(job)
        return self.operations.get(made.name) or made

    def get_task(
        self, request: batch.GetTaskRequest, context: grpc.ServicerContext
    ) -> batch_task.Task:
        """Return a task."""
        parts = _parts(request.name)
        job = self._find(parts["job"], context, "batch.tasks.get")
        task_record = parts["task"] and self.jobs.task(job.uid, int(parts["task"]))
        if not task_record or parts["gid"] != GROUP:
            raise _not_found(request.name)
        return _task_message(job, task_record)

    def list_tasks(
        self, request: batch.ListTasksRequest, context: grpc.ServicerContext
    ) -> batch.ListTasksResponse:
        """Return a page of a job's tasks, in order."""
        parts = _parts(request.parent)
        job = self._find(parts["job"], context, "batch.tasks.list")
        if parts["gid"] != GROUP or parts["task"]:
            raise _not_found(request.parent)
        test = _test(request.filter, _TASK_FIELDS)
        matching_tasks = [task for task in self.jobs.tasks(job.uid) if test(task)]
        page, token = _page(matching_tasks, request, f"{request.parent}?{request.filter}")
        return batch.ListTasksResponse(
            tasks=[_task_message(job, task) for task in page], next_page_token=token
        )

    def _find(self, name: str, context: grpc.ServicerContext, permission: str) -> BatchJob:
        parts = _parts(name)
        project, region = checks.resolve_parent(self.store, parts["parent"])
        guest = gate.guest_behind(context)
        checks.check_caller(self.store, guest, project, permission, name)
        self._sweep()
        path = f"projects/{project_number(project)}/locations/{region}/jobs/{parts['id']}"
        job = self.jobs.get(path)
        if job is None:
            raise _not_found(path)
        return job

    def _once(self, request: Any, target: str, act: Callable[[], Any]) -> Any:
        """Return the answer of ``act``; for a request repeated within an hour, the first answer."""
        if not request.request_id:
            return act()
        digest = hashlib.sha256(type(request).serialize(request)).hexdigest()
        since = self.jobs.time(_REMEMBERED)
        known = self.jobs.remembered(request.request_id, target, since)
        if known is None:
            answer: Any = act()
            kept = answer.name
            if isinstance(answer, batch_job.Job):
                kept = batch_job.Job.to_json(answer)
            self.jobs.remember(request.request_id, target, digest, kept)
            return answer
        if known[0] != digest:
            text = f"request_id {request.request_id} was used for another request."
            raise invalid_argument(text)
        if known[1].startswith("{"):
            made: Any = batch_job.Job.from_json(known[1])
            job = self.jobs.get(made.name)
            return self._message(job) if job and job.uid == made.uid else made
        return self.operations.get(known[1])

    def _begin(self, job: BatchJob, verb: str) -> operations_pb2.Operation:
        place = job.name.rpartition("/jobs/")[0]
        about = {"createTime": self.jobs.time(), "target": job.name, "verb": verb}
        metadata = batch.OperationMetadata.from_json(json.dumps(about | {"apiVersion": "v1"}))
        made = self.operations.begin(place, "", {}, metadata)
        self.jobs.set_operation(job.name, made.name)
        return made

    def _sweep(self) -> None:
        """Delete jobs past Google's retention time."""
        for job in self.jobs.expired():
            self.scheduler.remove(job)

    def _message(self, job: BatchJob) -> batch_job.Job:
        status: dict[str, Any] = {"state": str(job.state), "statusEvents": job.events}
        status["runDuration"] = f"{self._ran(job):.3f}s"
        counts = {str(k): v for k, v in self.jobs.counts(job.uid).items()}
        status["taskGroups"] = {GROUP: {"counts": counts, "instances": _instances(job)}}
        times = {"createTime": job.create_time, "updateTime": job.update_time}
        body = {**job.body, "name": job.name, "uid": job.uid, **times, "status": status}
        made = batch_job.Job()
        json_format.ParseDict(body, batch_job.Job.pb(made))
        return made

    def _ran(self, job: BatchJob) -> float:
        if job.start_time is None:
            return 0.0
        end = datetime.fromisoformat(job.end_time or self.jobs.time())
        return (end - datetime.fromisoformat(job.start_time)).total_seconds()


class Batch:
    """Table, scheduler and service of Batch in one server."""

    def __init__(
        self,
        cloud: CloudHost,
        faults: FaultTable,
        ask: Ask = lambda *_: None,
    ) -> None:
        """Create Batch; ``ask`` answers the REST requests about quotas."""
        home, store = cloud.home, cloud.store
        jobs = BatchTable(home)
        make_run = partial(BatchRun, cloud, jobs, faults)
        self._home, self._store, self._jobs = home, store, jobs
        wanting = Capacity(store, jobs, faults, ask).wanting
        self.scheduler = BatchScheduler(home, store, jobs, make_run, wanting)
        self.service = BatchService(store, jobs, self.scheduler, cloud.containers.refusal)

    def entries(self) -> dict[str, Callable[[str, dict[str, str]], Iterator[types.LogEntry]]]:
        """Return the readers of job logs for Cloud Logging, by resource type."""
        return {logs.RESOURCE: logs.entries_of(self._home, self._store, self._jobs)}


def _complete(body: dict[str, Any], name: str, project: str) -> None:
    """Add the defaults that Batch sets."""
    group = body["taskGroups"][0]
    count = int(group.get("taskCount", 0)) or 1
    group.update(name=f"{name}/taskGroups/{GROUP}", taskCount=str(count))
    at_once = min(count, checks.MAX_PARALLEL)
    group["parallelism"] = str(int(group.get("parallelism", 0)) or at_once)
    resource = group["taskSpec"].setdefault("computeResource", {})
    resource.setdefault("cpuMilli", "2000")
    resource.setdefault("memoryMib", "2000")
    policy = body.setdefault("allocationPolicy", {})
    region = name.split("/")[3]
    policy.setdefault("location", {}).setdefault("allowedLocations", [f"regions/{region}"])
    account = policy.setdefault("serviceAccount", {})
    account["email"] = account.get("email") or checks.default_account(project)
    policy.setdefault("labels", {})["batch-job-id"] = name.rpartition("/")[2]


def _instances(job: BatchJob) -> list[dict[str, Any]]:
    if job.state in (State.QUEUED, State.SCHEDULED) or not job.policy.get("machineType"):
        return []
    model = job.policy.get("provisioningModel", "STANDARD")
    return [{"machineType": job.policy["machineType"], "provisioningModel": model, "taskPack": "1"}]


def _task_message(job: BatchJob, task: BatchTask) -> batch_task.Task:
    body = {
        "name": f"{job.name}/taskGroups/{GROUP}/tasks/{task.number}",
        "status": {"state": str(task.state), "statusEvents": task.events},
    }
    made = batch_task.Task()
    json_format.ParseDict(body, batch_task.Task.pb(made))
    return made


def _json(message: Any) -> dict[str, Any]:
    try:
        return json_format.MessageToDict(message)
    except json_format.Error as error:  # a duration that JSON cannot have
        raise invalid_argument(f"Invalid value at 'job': {error}") from error


def _parts(name: str) -> re.Match[str]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise invalid_argument(f"Invalid resource name: {name[:200]!r}.")
    return match


def _not_found(name: str) -> ApiError:
    return ApiError(grpc.StatusCode.NOT_FOUND, f"Resource '{name}' was not found")


def _of_job(job: BatchJob, field: str) -> filters.Value:
    if field.startswith("labels."):
        return job.body.get("labels", {}).get(field.removeprefix("labels."))
    field = field.removeprefix("status.")
    return str(job.body.get("priority", 0)) if field == "priority" else str(getattr(job, field))


_JOB_FIELDS: Final = filters.Fields(
    re.compile(r"name|uid|(status\.)?state|priority|create_time|update_time|labels\.[\w-]+"),
    _of_job,
)
_TASK_FIELDS: Final = filters.Fields(
    re.compile(r"[Ss]tate|status\.state"), lambda task, _field: str(task.state)
)


def _test(text: str, fields: filters.Fields) -> Callable[[Any], bool]:
    try:
        return filters.parse(text, fields)
    except FilterError as error:
        raise invalid_argument(str(error)) from error


def _page(rows: Sequence[_T], request: Any, query: str) -> tuple[Sequence[_T], str]:
    """Return the requested page, and the token of the next page."""
    tag = hashlib.sha256(query.encode()).hexdigest()[:16]
    begin = 0
    if request.page_token:
        of, _, number = request.page_token.partition(":")
        if of != tag or not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise invalid_argument("Invalid page token, or the page token of another request.")
        begin = int(number)
    if request.page_size < 0:
        raise invalid_argument(f"page_size must not be negative, got {request.page_size}.")
    end = begin + min(request.page_size or _PAGE, _MAX_PAGE)
    return rows[begin:end], f"{tag}:{end}" if end < len(rows) else ""
