"""Resources of experiments by their service alone: names, ids, etags, masks, order and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.access import gate
from localgcp.access.guests import Guest
from localgcp.errors import ApiError
from localgcp.experiments import collections
from localgcp.experiments.metadata import ARTIFACTS, CONTEXTS, STORES, MetadataService
from localgcp.experiments.records import ExperimentTable
from localgcp.experiments.tensorboards import TensorboardService
from localgcp.inventory.store import SERVICE, Binding, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
GIVEN = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{NUMBER}/locations/us-central1"
BOX = f"{PLACE}/metadataStores/default"


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


class Served:
    """Both services over one file; each call comes at the next second."""

    def __init__(self, path: Path) -> None:
        self.store, self.table = Store(path), ExperimentTable(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        jobs = JobService(self.store, JobTable(path), _NoScheduler())
        self.metadata = MetadataService(jobs, self.table)
        self.boards = TensorboardService(jobs, self.table)
        self.metadata.create(STORES, GIVEN, vertex.MetadataStore(), "default", None)

    def artifact(self, id_: str = "", **body: Any) -> Any:
        return self.metadata.create(ARTIFACTS, BOX, vertex.Artifact(body), id_, None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seconds of the minute that have passed."""
    seconds = [0]

    def now() -> str:
        seconds[0] += 1
        return f"2026-01-02T03:04:{seconds[0]:02}.000000Z"

    monkeypatch.setattr(collections, "now", now)
    return seconds


@pytest.fixture
def served(tmp_path: Path, clock: list[int], monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(gate, "guest_behind", lambda _context: None)
    return Served(tmp_path / "cloud.sqlite")


def refused(call: Any, *args: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args)
    return error.value.code.name, error.value.message


@pytest.mark.parametrize(
    ("parent", "id_", "code", "text"),
    [
        (BOX, "Upper", "INVALID_ARGUMENT",
         "Invalid artifact_id: 'Upper'; valid ids are [a-z0-9-]{1,128}."),
        (BOX, "a", "ALREADY_EXISTS", f"Artifact {BOX}/artifacts/a already exists."),
        (f"{PLACE}/metadataStores/none", "b", "NOT_FOUND",
         f"The MetadataStore does not exist: {PLACE}/metadataStores/none"),
        (f"{PLACE}/tensorboards/1", "b", "INVALID_ARGUMENT",
         f"Invalid resource name: '{PLACE}/tensorboards/1'."),
        ("default", "b", "INVALID_ARGUMENT", "Invalid resource name: 'default'."),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(
    served: Served, parent: str, id_: str, code: str, text: str
) -> None:
    served.artifact("a")
    artifact = vertex.Artifact()
    found = refused(served.metadata.create, ARTIFACTS, parent, artifact, id_, None)
    assert found == (code, text)


def test_a_name_of_another_kind_or_of_none_is_refused(served: Served) -> None:
    find = served.metadata.find
    assert refused(find, ARTIFACTS, f"{BOX}/contexts/a", None) == (
        "INVALID_ARGUMENT",
        f"Invalid resource name: '{BOX}/contexts/a'; expected a Artifact.",
    )
    assert refused(find, CONTEXTS, f"{BOX}/contexts/a", None) == (
        "NOT_FOUND", f"The Context does not exist: {BOX}/contexts/a",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("roles/aiplatform.user", True),
        ("roles/aiplatform.admin", True),
        ("roles/editor", True),
        ("roles/owner", True),
        ("roles/aiplatform.viewer", False),
    ],
)
def test_a_job_needs_a_role_on_the_project(
    served: Served, monkeypatch: pytest.MonkeyPatch, role: str, may: bool
) -> None:
    guest = Guest("trainer@x")
    monkeypatch.setattr(gate, "guest_behind", lambda _context: guest)
    resource = f"projects/{PROJECT}"
    etag = served.store.policy(resource).etag
    bindings = (Binding(role, ("serviceAccount:trainer@x",)),)
    served.store.set_policy(resource, bindings, expected_etag=etag)
    if may:
        assert served.metadata.find(STORES, BOX, None)["name"] == BOX
    else:
        assert refused(served.metadata.find, STORES, BOX, None) == (
            "PERMISSION_DENIED",
            f"Permission denied on resource '{BOX}' (or it may not exist). "
            "The job runs as trainer@x.",
        )
