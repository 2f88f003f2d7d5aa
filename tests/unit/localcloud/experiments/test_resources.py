"""Rights of a job's account on metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.access import gate
from localgcp.access.callers import Guest
from localgcp.errors import ApiError
from localgcp.experiments.metadata import STORES, MetadataService
from localgcp.experiments.records import ExperimentTable
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.contract.cloud import Idle
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, set_grant

BOX = f"projects/{project_number(PROJECT)}/locations/us-central1/metadataStores/default"


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
    metadata = MetadataService(JobService(store, JobTable(path), Idle()), ExperimentTable(path))
    monkeypatch.setattr(gate, "guest_behind", lambda _context: None)
    metadata.create(STORES, PARENT, vertex.MetadataStore(), "default", None)
    monkeypatch.setattr(gate, "guest_behind", lambda _context: Guest(TRAINER))
    set_grant(store, f"projects/{PROJECT}", f"roles/{role}", TRAINER)
    if may:
        assert metadata.find(STORES, BOX, None)["name"] == BOX
        return
    with pytest.raises(
        ApiError, match=f"Permission denied on .*The job runs as {TRAINER}"
    ) as error:
        metadata.find(STORES, BOX, None)
    assert error.value.code.name == "PERMISSION_DENIED"
