"""Rights of a job's account on what the API lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.access import gate
from localgcp.access.callers import Guest
from localgcp.errors import ApiError
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService, TensorboardService
from tests.contract.cloud import Idle
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

BOARD = f"projects/{project_number(PROJECT)}/locations/us-central1/tensorboards/7"


@pytest.mark.parametrize(
    ("role", "may"),
    [("aiplatform.user", True), ("aiplatform.admin", True), ("editor", True), ("owner", True),
     ("aiplatform.viewer", False)],
)  # fmt: skip
def test_job_needs_a_role_on_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, may: bool
) -> None:
    path = tmp_path / "cloud.sqlite"
    store = Store(path)
    store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    store.put(TENSORBOARD, BOARD, PROJECT, {}, {"displayName": "b"})
    boards = TensorboardService(JobService(store, JobTable(path), Idle()))
    monkeypatch.setattr(gate, "guest_behind", lambda _context: Guest(TRAINER))
    set_grant(store, f"projects/{PROJECT}", f"roles/{role}", TRAINER)
    if may:
        assert boards.find(BOARD, None)["name"] == BOARD
        return
    with pytest.raises(
        ApiError, match=f"Permission denied on .*The job runs as {TRAINER}"
    ) as error:
        boards.find(BOARD, None)
    assert error.value.code.name == "PERMISSION_DENIED"
