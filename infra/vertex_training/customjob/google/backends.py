"""Routes each call about a job to Vertex AI or Batch; calls Batch, and converts its jobs.

The name of a job and the id of a request identify the service. A job has one turn on both services:
after a change of the service, a live job on the old service blocks the submission. On Batch the
caller chooses the job's name, which can be used once, so a create is safe to repeat.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from google.api_core.exceptions import (
    AlreadyExists,
    Forbidden,
    MethodNotImplemented,
)
from google.api_core.retry import Retry, if_transient_error

from vertex_training.customjob.batch import (
    STATES,
    BatchParameters,
    batch_job,
    is_job_of,
    job_id,
    reason,
)
from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.job_service import (
    PROVES_NOT_CREATED,
    VertexJobs,
    enum_name,
    send_once,
    to_proto,
)
from vertex_training.customjob.kinds import (
    BATCH_JOB,
    CUSTOM_JOB,
    JobKind,
    kind_of_name,
    kind_of_request,
)
from vertex_training.customjob.protocol import ports
from vertex_training.errors import NotSubmittedError

if TYPE_CHECKING:
    from google.cloud import batch_v1

    from vertex_training.customjob.google import vertex_api

SERVICE: Final = "Batch"
#: Seconds for repeating a create; well below ``Timing.lease``.
CREATE_DEADLINE: Final = 45.0
HINTS: Final = PROVES_NOT_CREATED | {
    "RESOURCE_EXHAUSTED": "wait, or request more quota of batch.googleapis.com",
}
READ_HINTS: Final = job_service.READ_HINTS | {
    "PERMISSION_DENIED": "grant roles/batch.jobsViewer in the project, and enable "
    "batch.googleapis.com",
}
#: Google's error reasons for a disabled API, and text of the error for an unused API.
DISABLED: Final = ("SERVICE_DISABLED", "API_DISABLED")
NEVER_USED: Final = "has not been used in project"


def shared_client(project: str, region: str, account: str = "") -> batch_v1.BatchServiceClient:
    """Return the official client; see ``job_service.service_client``."""
    from google.cloud import batch_v1
    from google.cloud.batch_v1.services.batch_service.transports import BatchServiceGrpcTransport

    types = batch_v1.BatchServiceClient, BatchServiceGrpcTransport
    return job_service.service_client(*types, project, region, account, "batch.googleapis.com")


class BatchJobs(VertexJobs):
    """``ports.JobService`` with the official client."""

    service: ClassVar = SERVICE
    hints: ClassVar = READ_HINTS

    def __init__(
        self,
        client: batch_v1.BatchServiceClient,
        subnet: str = "",
        notifications: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(client, BATCH_JOB)
        self._subnet, self._notifications = subnet, notifications

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> ports.JobSnapshot:
        """Send a CustomJob as a Batch job whose id derives from the request.

        Raises NotSubmittedError or InDoubtError, also if another job has this name.
        """
        from google.cloud import batch_v1

        _, project, _, region = parent.split("/")
        turn = int(labels.get(ports.TURN_LABEL, "1"))
        id_ = job_id(
            labels[ports.STACK_LABEL], labels[ports.JOB_LABEL], labels[ports.REQUEST_ID_LABEL], turn
        )
        place = BatchParameters(project, region, id_, self._subnet, self._notifications)
        message = batch_job(json.loads(body), place, labels)
        sent = to_proto(batch_v1.Job, message)
        request = {"parent": parent, "job_id": id_, "job": sent, "request_id": str(uuid.uuid4())}

        def create_job(*, timeout: float, **_once: Any) -> batch_v1.Job:
            again = Retry(if_transient_error, initial=0.5, maximum=5.0, timeout=CREATE_DEADLINE)
            try:
                return self._client.create_job(request, retry=again, timeout=timeout / 4)
            except AlreadyExists:
                return self._client.get_job(name=f"{parent}/jobs/{id_}", retry=again)

        job = send_once(create_job, "the job", HINTS, service=SERVICE)
        if not _is_same(job, sent, labels):
            raise NotSubmittedError(
                f"another user created a different job with the name {job.name}. Nothing was "
                f"submitted. Delete that job (`gcloud batch jobs delete {id_}`), or raise run to "
                "change the name of this job."
            )
        return snapshot(job)

    def _snapshot(self, job: batch_v1.Job) -> ports.JobSnapshot:
        return snapshot(job)

    def find(self, parent: str, request_id: str) -> list[ports.JobSnapshot]:
        """Return all jobs whose label and name have the request id."""
        jobs = self.listed(parent, [f'labels.{ports.REQUEST_ID_LABEL}="{request_id}"'])
        return [snapshot(job) for job in jobs if is_job_of(job.name, request_id)]

    def list_jobs(self, **arguments: Any) -> list[batch_v1.Job]:
        """Return the jobs of all pages; empty for a disabled API."""
        try:
            return super().list_jobs(**arguments)
        except MethodNotImplemented:
            return []  # an old version of the local cloud, without Batch
        except Forbidden as error:
            if error.reason in DISABLED or NEVER_USED in str(error.message):
                return []  # the project has no Batch jobs
            raise

    def describe(self, error: Exception) -> str:
        return str(getattr(error, "message", error))

    def log_ids(self, name: str) -> list[str]:
        """Return the uid of the job, which is the id of its logs."""
        job = self.message(name)
        return [job.uid] if job and job.uid else []


def snapshot(job: batch_v1.Job) -> ports.JobSnapshot:
    """Convert a Batch job into a ``JobSnapshot``."""
    return job_service.snapshot(as_custom_job(job), BATCH_JOB)


def as_custom_job(job: batch_v1.Job) -> vertex_api.CustomJob:
    """Convert a Batch job into a CustomJob."""
    from vertex_training.customjob.google import vertex_api

    groups: Any = job.task_groups[:1]
    runnables = [runnable for group in groups for runnable in group.task_spec.runnables]
    container = next((r.container for r in runnables if r.container.image_uri), None)
    instances: Any = job.allocation_policy.instances[:1]
    machine_type = "".join(instance.policy.machine_type for instance in instances)
    pool = {
        "replica_count": sum(int(group.task_count) for group in groups),
        "machine_spec": {"machine_type": machine_type},
        "container_spec": {
            "image_uri": container.image_uri if container else "",
            "command": [container.entrypoint] if container and container.entrypoint else [],
            "args": list(container.commands) if container else [],
        },
    }
    folder = "".join(g.task_spec.environment.variables.get("AIP_MODEL_DIR", "") for g in groups)
    output = {"output_uri_prefix": folder.removesuffix("/model/")} if folder else None
    state = STATES.get(enum_name(job.status.state), "JOB_STATE_UNSPECIFIED")
    began, ended = _times(job)
    events = [(e.description, e.task_execution.exit_code) for e in job.status.status_events]
    error = {"code": 2, "message": reason(events)} if state == "JOB_STATE_FAILED" else None
    optional = {"start_time": began, "end_time": ended, "error": error}
    return vertex_api.CustomJob(
        name=job.name,
        display_name=job.name.rpartition("/")[2],
        state=vertex_api.JobState[state],
        labels=dict(job.labels),
        create_time=job.create_time,
        job_spec={
            "worker_pool_specs": [pool],
            "service_account": job.allocation_policy.service_account.email,
            **({"base_output_directory": output} if output else {}),
        },
        **{key: value for key, value in optional.items() if value},
    )


def _times(job: Any) -> tuple[Any, Any]:
    """Return start and end of the first task; None for each event that has not happened yet."""
    events, ended = job.status.status_events, None
    if enum_name(job.status.state) in ("SUCCEEDED", "FAILED", "CANCELLED"):
        ended = job.update_time
    ran = [event.event_time for event in events if re.search(r"\bto RUNNING\b", event.description)]
    if ran:
        return ran[0], ended
    return (ended - job.status.run_duration if ended and job.status.run_duration else None), ended


def _is_same(job: batch_v1.Job, sent: batch_v1.Job, labels: Mapping[str, str]) -> bool:
    def essence(message: batch_v1.Job) -> Any:
        runnables = [r for group in message.task_groups for r in group.task_spec.runnables]
        containers = [(r.container, r.script.text) for r in runnables]
        ran = [(c.image_uri, c.entrypoint, list(c.commands), script) for c, script in containers]
        return message.allocation_policy.service_account.email, ran

    mine = (ports.REQUEST_ID_LABEL, ports.DIGEST_LABEL)
    same_labels = all(job.labels.get(label) == labels.get(label) for label in mine)
    return same_labels and essence(job) == essence(sent)


def connect(
    project: str,
    region: str,
    kind: JobKind = CUSTOM_JOB,
    account: str = "",
    subnet: str = "",
    notifications: Sequence[Mapping[str, Any]] = (),
) -> BackendJobs:
    """Return the job service of a region, which creates jobs of this ``kind``.

    On Batch, new jobs have the ``subnet`` and ``notifications``. Raises OperatorError.
    """
    job_service.local_address(project)
    return BackendJobs(project, region, kind, account, subnet, notifications)


@dataclass(frozen=True, slots=True)
class BackendJobs:
    """``ports.JobService`` for Vertex AI and Batch; connects at the first call."""

    project: str
    region: str
    kind: JobKind
    account: str
    subnet: str
    notifications: Sequence[Mapping[str, Any]]

    def _of(self, kind: JobKind) -> VertexJobs | BatchJobs:
        if kind is not BATCH_JOB:
            return job_service.connect(self.project, self.region, kind, self.account)
        shared = shared_client(self.project, self.region, self.account)
        return BatchJobs(shared, self.subnet, self.notifications)

    def _named(self, name: str) -> VertexJobs | BatchJobs:
        return self._of(kind_of_name(name) or self.kind)

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> ports.JobSnapshot:
        return self._of(self.kind).create(parent, body, labels)

    def get(self, name: str) -> ports.JobSnapshot | None:
        return self._named(name).get(name)

    def find(self, parent: str, request_id: str) -> list[ports.JobSnapshot]:
        tuning = self.kind.spec != CUSTOM_JOB.spec
        kind = self.kind if tuning else kind_of_request(request_id)
        return self._of(kind).find(parent, request_id)

    def log_ids(self, name: str) -> list[str]:
        return self._named(name).log_ids(name)

    def cancel(self, name: str) -> None:
        self._named(name).cancel(name)

    def delete(self, name: str) -> None:
        self._named(name).delete(name)
