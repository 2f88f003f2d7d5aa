"""The methods of the job service over its tables alone: whole jobs, pages, refusals."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.longrunning import operations_pb2
from google.protobuf import json_format

from localgcp.errors import ApiError
from localgcp.inventory.store import ACCOUNT, SERVICE, TENSORBOARD, Store, project_number
from localgcp.vertex import checks
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.vertex.rows import job_row

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
PARENT = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{NUMBER}/locations/us-central1"
POOL: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": "us-docker.pkg.dev/x/y/z:1", "command": ["true"]},
}
CUSTOM: dict[str, Any] = {"displayName": "job", "jobSpec": {"workerPoolSpecs": [POOL]}}


class Jobs:
    """The service; what it asks of the scheduler is noted."""

    def __init__(self, path: Path) -> None:
        self.store, self.table = Store(path), JobTable(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        self.asked: list[tuple[str, str]] = []
        self.reason: str | None = None
        self.service = JobService(self.store, self.table, self, lambda _spec: self.reason)

    def submit(self, job_id: str) -> None:
        self.asked.append(("submit", job_id))

    def cancel(self, job_id: str) -> None:
        self.asked.append(("cancel", job_id))

    def create(self, parent: str = PARENT, **changes: Any) -> dict[str, Any]:
        job = vertex.CustomJob()
        body = {**CUSTOM, **changes}
        json_format.ParseDict(body, vertex.CustomJob.pb(job))
        request = vertex.CreateCustomJobRequest(parent=parent, custom_job=job)
        return body_of(self.service.create_custom_job(request))

    def list(self, **request: Any) -> tuple[list[str], str]:
        asked = vertex.ListCustomJobsRequest(parent=PARENT, **request)
        found = self.service.list_custom_jobs(asked)
        names = [job.name.rpartition("/")[2] for job in found.custom_jobs]
        return names, found.next_page_token

    def operations(self, name: str = PARENT, **request: Any) -> list[str]:
        asked = operations_pb2.ListOperationsRequest(name=name, **request)
        return [each.name for each in self.service.list_operations(asked).operations]


def body_of(job: Any) -> dict[str, Any]:
    return json_format.MessageToDict(vertex.CustomJob.pb(job))


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args, **more)
    return error.value.code.name, error.value.message


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setattr(checks, "_installed_limits", tuple)
    return Jobs(tmp_path / "cloud.sqlite")


def test_what_the_service_would_refuse_is_refused(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = "a@b"
    assert refused(jobs.create, jobSpec={**CUSTOM["jobSpec"], "serviceAccount": account}) == (
        "PERMISSION_DENIED",
        "You do not have permission to act as service_account: a@b. (or it may not exist).",
    )
    jobs.store.put(ACCOUNT, account, PROJECT, {}, {"email": account})
    board = f"{PARENT}/tensorboards/9"
    spec = {**CUSTOM["jobSpec"], "serviceAccount": account, "tensorboard": board}
    assert refused(jobs.create, jobSpec=spec) == (
        "NOT_FOUND", f"The Tensorboard does not exist: {board}",
    )  # fmt: skip
    jobs.store.put(TENSORBOARD, f"{PLACE}/tensorboards/9", PROJECT, {}, {})
    jobs.create(jobSpec=spec)
    jobs.reason = "no engine"
    assert refused(jobs.create) == ("FAILED_PRECONDITION", "no engine")

    def limits(job: dict[str, Any], region: str) -> Any:
        yield "job_spec.x", f"{job['displayName']} in {region}"

    monkeypatch.setattr(checks, "_installed_limits", lambda: (limits,))
    listed = "List of found errors:\t1.Field: job_spec.x; Message: job in us-central1\t"
    assert refused(jobs.create) == ("INVALID_ARGUMENT", listed)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("customJobs/1", "INVALID_ARGUMENT",
         "Invalid resource name: 'customJobs/1'; expected a CustomJob."),
        (f"{PARENT}/customJobs/a", "INVALID_ARGUMENT",
         f"Invalid resource name: '{PARENT}/customJobs/a'; expected a CustomJob."),
        (f"{PARENT}/customJobs/1", "NOT_FOUND",
         f"The CustomJob does not exist: {PARENT}/customJobs/1"),
        (f"projects/{PROJECT}/locations/us-east1/customJobs/7", "NOT_FOUND",
         f"The CustomJob does not exist: projects/{PROJECT}/locations/us-east1/customJobs/7"),
    ],
)  # fmt: skip
def test_a_job_that_is_not_there_is_not_found(jobs: Jobs, name: str, code: str, text: str) -> None:
    jobs.table.insert(job_row("7", {}))
    service = jobs.service
    for call, request in (
        (service.get_custom_job, vertex.GetCustomJobRequest(name=name)),
        (service.cancel_custom_job, vertex.CancelCustomJobRequest(name=name)),
        (service.delete_custom_job, vertex.DeleteCustomJobRequest(name=name)),
    ):
        assert refused(call, request) == (code, text)


def test_operations_are_listed_as_done_or_not(jobs: Jobs) -> None:
    done = jobs.service.finish(f"{PLACE}/models/m", vertex.Model(), vertex.Model()).name
    live = jobs.service.operations.begin(f"{PLACE}/models/m", "x", {}, vertex.Model()).name
    assert jobs.operations() == sorted([done, live])
    assert jobs.operations(f"{PARENT}/models/m") == [live]
    for text, found in (
        ("done=true", [done]), ("done=false", [live]), ("DONE:True", [done]), ("", [done, live]),
    ):  # fmt: skip
        assert jobs.operations(filter=text) == sorted(found)
    assert refused(jobs.operations, filter="name=x") == (
        "INVALID_ARGUMENT", "Invalid filter: 'name=x'; done=false is one.",
    )  # fmt: skip
    assert refused(jobs.operations, "models/m") == (
        "INVALID_ARGUMENT", "Invalid resource name: 'models/m'.",
    )  # fmt: skip


def test_an_operation_is_waited_for_half_a_minute_at_most(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    operations = jobs.service.operations
    monkeypatch.setattr(operations, "wait", lambda _name, seconds: waited.append(seconds))
    for seconds in (None, 0, 5, 31, -1):
        request = operations_pb2.WaitOperationRequest(name="n")
        if seconds is not None:
            request.timeout.FromSeconds(seconds)
        assert refused(jobs.service.wait_operation, request) == (
            "NOT_FOUND", "The Operation does not exist: n",
        )  # fmt: skip
    assert waited == [30.0, 0, 5, 30.0, 0]
    assert refused(jobs.service.get_operation, operations_pb2.GetOperationRequest(name="n")) == (
        "NOT_FOUND", "The Operation does not exist: n",
    )  # fmt: skip


@pytest.fixture
def three(jobs: Jobs) -> Jobs:
    """Jobs 1 to 3, made one after the other."""
    for number in "123":
        row = job_row(number, {})
        object.__setattr__(row, "create_time", f"2026-01-0{number}T00:00:00.000000Z")
        object.__setattr__(row, "labels", {"n": number})
        jobs.table.insert(row)
    return jobs


def test_jobs_are_listed_page_by_page_newest_first(three: Jobs) -> None:
    assert three.list() == (["3", "2", "1"], "")
    assert three.list(page_size=3) == (["3", "2", "1"], "")
    found, token = three.list(page_size=2)
    assert found == ["3", "2"]
    assert three.list(page_size=2, page_token=token) == (["1"], "")
    three.table.delete("2")
    assert three.list(page_size=1, page_token=token) == (["1"], "")
    assert three.list(filter='labels.n="3"') == (["3"], "")


def test_a_page_that_cannot_be_is_refused(three: Jobs) -> None:
    _, token = three.list(page_size=1)
    assert refused(three.list, page_size=-1) == (
        "INVALID_ARGUMENT", "page_size must not be negative, got -1.",
    )  # fmt: skip
    for text in (b"5", b"null", b"[1, 2]", b"[" * 100_000):
        wrong = base64.urlsafe_b64encode(text).decode()
        assert refused(three.list, page_token=wrong) == (
            "INVALID_ARGUMENT", f"Invalid page token: {wrong[:80]!r}.",
        )  # fmt: skip
    assert refused(three.list, page_token="x") == (
        "INVALID_ARGUMENT", "Invalid page token: 'x'.",
    )  # fmt: skip
    assert refused(three.list, page_token=token, filter="labels.n=3") == (
        "INVALID_ARGUMENT",
        "The page token belongs to another request: parent and filter must be equal.",
    )
    assert refused(three.list, filter="nonsense(")[0] == "INVALID_ARGUMENT"
