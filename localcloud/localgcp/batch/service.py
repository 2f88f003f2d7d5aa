"""The served methods of ``google.cloud.batch.v1.BatchService``, and job logs for Cloud Logging."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import grpc
from google.longrunning import operations_pb2
from google.protobuf import json_format

from localgcp.access import gate
from localgcp.apis.client import Api, batch, batch_job
from localgcp.apis.server import failed_precondition, invalid_argument
from localgcp.batch import checks
from localgcp.batch.records import ACTIVE, ENDED, GROUP, BatchJob, BatchTable, State
from localgcp.batch.run import BatchRun
from localgcp.batch.scheduler import BatchScheduler, Capacity
from localgcp.errors import ApiError
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import LOG_WRITERS, Store, has_role, project_number
from localgcp.runner.programs import CloudHost
from localgcp.vertex.collections import newest_page
from localgcp.vertex.log_entries import Lines, LogLine, lines_of
from localgcp.vertex.operations import OperationTable

_NAME: Final = re.compile(r"(?P<parent>projects/[^/]+/locations/[^/]+)/jobs/(?P<id>[^/]+)")
#: Resource type of log entries.
RESOURCE: Final = "batch.googleapis.com/Job"


class BatchService:
    """Serves Batch jobs; all methods raise ApiError."""

    api: ClassVar = Api("google.cloud.batch_v1", "batch_service")

    def __init__(
        self,
        store: Store,
        jobs: BatchTable,
        scheduler: BatchScheduler,
        refusal: Callable[[Mapping[str, Any]], str | None],
    ) -> None:
        """``refusal`` returns why this machine cannot run a ``jobSpec``, or None."""
        self.store, self.jobs, self.scheduler = store, jobs, scheduler
        self._refusal = refusal
        self.operations = OperationTable(jobs.path)

    def create_job(
        self, request: batch.CreateJobRequest, context: grpc.ServicerContext
    ) -> batch_job.Job:
        """Create a job. Its name must not be in use, not even by an ended job."""
        guest = gate.guest_behind(context)
        project, region = checks.resolve_parent(self.store, request.parent)
        checks.check_caller(self.store, guest, project, "batch.jobs.create", request.parent)
        checks.check_id(request.job_id)
        message = batch_job.Job.pb(request.job)
        if message.ByteSize() > checks.MAX_BYTES:
            raise invalid_argument("The definition of a job can have at most 1 MiB.")
        try:
            body = json_format.MessageToDict(message)
        except json_format.Error as error:  # JSON cannot represent the duration.
            raise invalid_argument(f"Invalid value at 'job': {error}") from error
        checks.check_job(body, region)
        if text := self._refusal(checks.as_job_spec(body)):
            raise failed_precondition(text)
        parent = f"projects/{project_number(project)}/locations/{region}"
        uid = f"j-{uuid.uuid4()}"
        name = f"{parent}/jobs/{request.job_id or f'job-{uid[2:]}'}"
        _complete(body, name, project)
        email = body["allocationPolicy"]["serviceAccount"]["email"]
        checks.check_account(self.store, guest, project, email)
        time = self.jobs.time()
        made = BatchJob(name, uid, project, region, body, State.QUEUED, [], time, time)
        if not self.jobs.insert(made):
            text = f'Resource "{name}" already exists'
            raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
        self.scheduler.wake()
        return self._message(made)

    def get_job(self, request: batch.GetJobRequest, context: grpc.ServicerContext) -> batch_job.Job:
        return self._message(self._find(request.name, context, "batch.jobs.get"))

    def list_jobs(
        self, request: batch.ListJobsRequest, context: grpc.ServicerContext
    ) -> batch.ListJobsResponse:
        """Return a page of a project's jobs, newest first; ``locations/-`` means all regions."""
        parent = request.parent
        project, region = checks.resolve_parent(self.store, parent, any_region=True)
        guest = gate.guest_behind(context)
        checks.check_caller(self.store, guest, project, "batch.jobs.list", parent)
        if request.order_by:
            raise invalid_argument("order_by: the local cloud lists jobs only newest first.")
        jobs = {j.name: j for j in self.jobs.list(project) if region in ("-", j.region)}
        page, token = newest_page(map(_body, jobs.values()), _FIELDS, request, parent)
        messages = [self._message(jobs[body["name"]]) for body in page]
        return batch.ListJobsResponse(jobs=messages, next_page_token=token)

    def cancel_job(
        self, request: batch.CancelJobRequest, context: grpc.ServicerContext
    ) -> operations_pb2.Operation:
        """Cancel a job. An ended job cannot be cancelled; a second call has no effect."""
        with self.jobs.lock:
            job = self._find(request.name, context, "batch.jobs.cancel")
            if job.state is State.CANCELLING and (going := self.operations.get(job.operation)):
                return going
            if not self.jobs.move(job.name, State.CANCELLING, ACTIVE):
                text = f"Job {job.name} is in state {job.state} and cannot be cancelled."
                raise failed_precondition(text)
            return self._begin(job, "cancel")

    def delete_job(
        self, request: batch.DeleteJobRequest, context: grpc.ServicerContext
    ) -> operations_pb2.Operation:
        """Delete a job, after its end if it is running. Then the job's name can be used again."""
        with self.jobs.lock:
            job = self._find(request.name, context, "batch.jobs.delete")
            if job.state is State.DELETING and (going := self.operations.get(job.operation)):
                return going
            if job.state is State.CANCELLING:  # the deletion also completes the cancellation
                self.operations.end(job.operation, batch.CancelJobResponse())
            self.jobs.move(job.name, State.DELETING, (*ACTIVE, *ENDED, State.CANCELLING))
            return self._begin(job, "delete")

    def _find(self, name: str, context: grpc.ServicerContext, permission: str) -> BatchJob:
        match = _NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name[:200]!r}.")
        project, region = checks.resolve_parent(self.store, match["parent"])
        guest = gate.guest_behind(context)
        checks.check_caller(self.store, guest, project, permission, name)
        path = f"projects/{project_number(project)}/locations/{region}/jobs/{match['id']}"
        job = self.jobs.get(path)
        if job is None:
            raise ApiError(grpc.StatusCode.NOT_FOUND, f"Resource '{path}' was not found")
        return job

    def _begin(self, job: BatchJob, verb: str) -> operations_pb2.Operation:
        place = job.name.rpartition("/jobs/")[0]
        about = {"createTime": self.jobs.time(), "target": job.name, "verb": verb}
        metadata = batch.OperationMetadata.from_json(json.dumps(about | {"apiVersion": "v1"}))
        made = self.operations.begin(place, "", {}, metadata)
        self.jobs.set_operation(job.name, made.name)
        self.scheduler.end(job)
        return self.operations.get(made.name) or made

    def _message(self, job: BatchJob) -> batch_job.Job:
        body = _body(job)
        body["status"]["statusEvents"] = job.events
        now = self.jobs.time()
        start, end = (datetime.fromisoformat(t or now) for t in (job.start_time, job.end_time))
        ran = (end - start).total_seconds() if job.start_time else 0.0
        body["status"]["runDuration"] = f"{ran:.3f}s"
        counts = {str(k): v for k, v in self.jobs.counts(job.uid).items()}
        body["status"]["taskGroups"] = {GROUP: {"counts": counts, "instances": _instances(job)}}
        made = batch_job.Job()
        json_format.ParseDict(body, batch_job.Job.pb(made))
        return made


def _body(job: BatchJob) -> dict[str, Any]:
    times = {"createTime": job.create_time, "updateTime": job.update_time}
    status = {"state": str(job.state)}
    return {**job.body, "name": job.name, "uid": job.uid, **times, "status": status}


class Batch:
    """Table, scheduler and service of Batch in one server."""

    def __init__(self, cloud: CloudHost, faults: FaultTable) -> None:
        home, store = cloud.home, cloud.store
        jobs = BatchTable(home)
        make_run = partial(BatchRun, cloud, jobs, faults)
        self._home, self._store, self._jobs = home, store, jobs
        wanting = Capacity(store, jobs, faults).wanting
        self.scheduler = BatchScheduler(home, store, jobs, make_run, wanting)
        self.service = BatchService(store, jobs, self.scheduler, cloud.containers.refusal)

    def entries(self) -> dict[str, Lines]:
        """Return the readers of job logs for Cloud Logging, by resource type."""
        return {RESOURCE: self._lines}

    def _lines(self, project: str, equal: Mapping[str, str]) -> Iterator[LogLine]:
        """Yield the log lines of a project's jobs, selected by filter labels.

        Entries exist if the destination is CLOUD_LOGGING and the job's account may write logs
        (doc:batch/analyze-job-using-logs).
        """
        uid = equal.get("labels.job_uid") or equal.get("resource.labels.job_id")
        for job in self._jobs.list(project):
            may_write = has_role(self._store, job.account, LOG_WRITERS, f"projects/{project}")
            kept = job.body.get("logsPolicy", {}).get("destination") == "CLOUD_LOGGING"
            if uid in (None, job.uid) and kept and may_write:
                for file in sorted((self._home.batch / job.uid / "logs").glob("*.log")):
                    yield from _of_file(job, file)


def _complete(body: dict[str, Any], name: str, project: str) -> None:
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


_FIELDS: Final = re.compile(r"name|uid|status\.state|create_time|update_time|labels\.[\w-]+")


def _of_file(job: BatchJob, file: Path) -> Iterator[LogLine]:
    kind, _, task = file.stem.partition("-")  # ``agent`` or ``task-NUMBER``
    labels = {**job.body.get("labels", {}), "job_uid": job.uid, "task_group_name": GROUP}
    if task:
        labels["task_id"] = f"task/{job.uid}-{GROUP}-{task}/0/0"
    container = f"projects/{job.project}"
    first = LogLine(
        f"projects/{job.project}/logs/batch_{kind}_logs",
        RESOURCE,
        {"location": job.region, "resource_container": container, "job_id": job.uid},
        datetime.fromisoformat(job.create_time),
        f"{job.uid}-{file.stem}",
        labels,
    )
    yield from lines_of(file, first, ended=job.state in ENDED)
