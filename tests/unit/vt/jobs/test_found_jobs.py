"""A stack's jobs in both services: adopted requests, lists and cancellations."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState
from google.cloud.batch_v1.types import Job as BatchJob

from vertex_training.customjob.google.backends import BatchJobs
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.errors import OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import service

PLACE = "projects/acme-ml/locations/us-central1"
STACK = "labels.vt-stack=dev AND labels.vt-request-id:*"


def custom(number: int, name: str = "") -> CustomJob:
    labels = {"vt-job": name, "vt-request-id": "x"} if name else {}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", labels=labels, state=JobState.JOB_STATE_RUNNING,
        create_time="2026-11-01T10:00:00Z",
    )  # fmt: skip


def batch(id_: str, state: str = "RUNNING") -> BatchJob:
    labels = {"vt-job": "d", "vt-request-id": "batch-x"}
    return BatchJob(
        name=f"{PLACE}/jobs/{id_}", labels=labels, status={"state": state},
        create_time="2026-11-01T10:00:00Z",
    )  # fmt: skip


class Vertex:
    """The job service: jobs by filter, and the requests that it got."""

    def __init__(self) -> None:
        self.listed: dict[str, list[Any]] = {}
        self.error: Exception | None = None
        self.asked: list[Any] = []

    def list_custom_jobs(self, request: dict[str, str], **_: Any) -> list[Any]:
        assert request["parent"] == PLACE
        return self.listed.get(request["filter"], [])

    def list_hyperparameter_tuning_jobs(self, **_: Any) -> list[Any]:
        return []

    def cancel_custom_job(self, name: str, **_: Any) -> None:
        self.asked.append(name)
        if self.error:
            raise self.error

    cancel_hyperparameter_tuning_job = cancel_custom_job


class Batch(BatchJobs):
    """Google Batch, in the same way."""

    def __init__(self) -> None:
        self.listed_by: dict[tuple[str, ...], Any] = {}
        self.asked: list[Any] = []

    def listed(self, parent: str, terms: list[str]) -> list[BatchJob]:
        found = self.listed_by.get(tuple(terms), [])
        if isinstance(found, Exception):
            raise found
        return found

    def cancel(self, name: str) -> None:
        self.asked.append(name)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Both services, and the jobs of stack ``dev``."""
    found = SimpleNamespace(vertex=Vertex(), batch=Batch())
    monkeypatch.setattr(service, "client", lambda *_: found.vertex)
    api = service.backends
    monkeypatch.setattr(api, "shared_client", lambda *_: "shared")
    monkeypatch.setattr(api, "BatchJobs", lambda client: found.batch if client == "shared" else 0)
    ref = StackRef(Path("/srv"), "demo", "dev", "acme-ml", "us-central1")
    found.jobs = service.Jobs(ref)
    return found


@pytest.mark.parametrize(
    ("id_", "state", "adopted"),
    [
        ("dev-d-7", "RUNNING", True),
        ("dev-d-7-t2", "SUCCEEDED", True),
        ("dev-d-7", "FAILED", False),
        ("dev-d-17", "RUNNING", False),  # another's, with the label of this request
    ],
)
def test_a_request_on_batch_is_asked_for_there(
    cloud: SimpleNamespace, id_: str, state: str, adopted: bool
) -> None:
    cloud.batch.listed_by = {('labels.vt-request-id="batch-7"',): [batch(id_, state)]}
    assert cloud.jobs.is_adopted("batch-7", BATCH_JOB) is adopted


def test_jobs_on_batch_that_cannot_be_listed_are_told_and_the_others_shown(
    cloud: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.vertex.listed = {STACK: [custom(1, "a")]}
    cloud.batch.listed_by = {
        ('labels.vt-stack="dev"',): [batch("b-1")],
        ('labels.vt-program="demo_dev"',): OperatorError("403 no right"),
    }
    assert [job.name for job in cloud.jobs.list()] == [f"{PLACE}/customJobs/1"]
    assert capsys.readouterr().err == "cannot list jobs on Batch: 403 no right\n"


@pytest.mark.parametrize(
    "error", [None, exceptions.NotFound("x"), exceptions.FailedPrecondition("x")]
)
def test_each_kind_of_job_is_cancelled_by_its_service_and_an_ended_one_is_left(
    cloud: SimpleNamespace, error: Exception | None
) -> None:
    of_tuning = HyperparameterTuningJob(name=f"{PLACE}/hyperparameterTuningJobs/4")
    of_batch = service.backends.as_custom_job(batch("b-1"))
    cloud.vertex.error = error
    for job in (custom(1), of_tuning, of_batch):
        cloud.jobs.cancel(job)
    assert cloud.vertex.asked == [custom(1).name, of_tuning.name]
    assert cloud.batch.asked == [f"{PLACE}/jobs/b-1"]
