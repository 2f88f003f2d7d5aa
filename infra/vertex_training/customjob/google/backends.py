"""Routes each call about a job to Vertex AI or to Batch.

The name of a job identifies its service, as does the id of a request. A job has one turn on both
services: after a change of the service, a live job on the old service blocks the submission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vertex_training.customjob.google import batch_service, job_service
from vertex_training.customjob.google.batch_service import BatchJobs
from vertex_training.customjob.google.job_service import VertexJobs
from vertex_training.customjob.kinds import (
    BATCH_JOB,
    CUSTOM_JOB,
    JobKind,
    kind_of_name,
    kind_of_request,
)
from vertex_training.customjob.protocol.ports import JobSnapshot


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


class BackendJobs:
    """``ports.JobService`` for Vertex AI and Batch; connects at the first call."""

    def __init__(
        self,
        project: str,
        region: str,
        kind: JobKind,
        account: str,
        subnet: str,
        notifications: Sequence[Mapping[str, Any]],
    ) -> None:
        self._place, self._kind = (project, region), kind
        self._account, self._subnet, self._notifications = account, subnet, notifications

    def _of(self, kind: JobKind) -> VertexJobs | BatchJobs:
        if kind is not BATCH_JOB:
            return job_service.connect(*self._place, kind, self._account)
        shared = batch_service.shared_client(*self._place, self._account)
        return BatchJobs(shared, self._subnet, self._notifications)

    def _named(self, name: str) -> VertexJobs | BatchJobs:
        return self._of(kind_of_name(name) or self._kind)

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        return self._of(self._kind).create(parent, body, labels)

    def get(self, name: str) -> JobSnapshot | None:
        return self._named(name).get(name)

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        tuning = self._kind.spec != CUSTOM_JOB.spec
        kind = self._kind if tuning else kind_of_request(request_id)
        return self._of(kind).find(parent, request_id)

    def log_ids(self, name: str) -> list[str]:
        return self._named(name).log_ids(name)

    def cancel(self, name: str) -> None:
        self._named(name).cancel(name)

    def delete(self, name: str) -> None:
        self._named(name).delete(name)
