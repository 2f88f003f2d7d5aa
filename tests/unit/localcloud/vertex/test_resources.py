"""Rights of a job's account on what the API lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud.aiplatform_v1.types import job_service

from localgcp.access import gate
from localgcp.access.callers import Guest
from localgcp.errors import ApiError
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService, TensorboardService
from tests.contract.cloud import Idle
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

PLACE = f"projects/{PROJECT}/locations/us-central1"
JOB = f"{PLACE}/customJobs/7"
BOARD = f"projects/{project_number(PROJECT)}/locations/us-central1/tensorboards/7"


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobService:
    """Return a job service whose caller is a job of ``TRAINER``."""
    store = Store(tmp_path / "cloud.sqlite")
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    store.put(TENSORBOARD, BOARD, PROJECT, {}, {"displayName": "b"})
    monkeypatch.setattr(gate, "guest_behind", lambda _context: Guest(TRAINER))
    return JobService(store, JobTable(tmp_path / "cloud.sqlite"), Idle())


@pytest.mark.parametrize(
    ("role", "may"),
    [("aiplatform.user", True), ("aiplatform.admin", True), ("editor", True), ("owner", True),
     ("aiplatform.viewer", False)],
)  # fmt: skip
def test_job_needs_a_role_on_the_project(jobs: JobService, role: str, may: bool) -> None:
    boards = TensorboardService(jobs)
    set_grant(jobs.store, f"projects/{PROJECT}", f"roles/{role}", TRAINER)
    if may:
        assert boards.find(BOARD, None)["name"] == BOARD
        return
    with pytest.raises(
        ApiError, match=f"Permission denied on .*The job runs as {TRAINER}"
    ) as error:
        boards.find(BOARD, None)
    assert error.value.code.name == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    ("verb", "role", "request_"),
    [
        ("create_custom_job", "viewer", job_service.CreateCustomJobRequest(parent=PLACE)),
        ("get_custom_job", "batch", job_service.GetCustomJobRequest(name=JOB)),
        ("list_custom_jobs", "batch", job_service.ListCustomJobsRequest(parent=PLACE)),
        ("cancel_custom_job", "viewer", job_service.CancelCustomJobRequest(name=JOB)),
        ("delete_custom_job", "viewer", job_service.DeleteCustomJobRequest(name=JOB)),
    ],
)
def test_job_without_a_role_may_not_use_jobs(
    jobs: JobService, verb: str, role: str, request_: Any
) -> None:
    set_grant(jobs.store, f"projects/{PROJECT}", f"roles/aiplatform.{role}", TRAINER)
    with pytest.raises(ApiError, match=TRAINER) as refused:
        getattr(jobs, verb)(request_, None)
    assert refused.value.code is grpc.StatusCode.PERMISSION_DENIED
