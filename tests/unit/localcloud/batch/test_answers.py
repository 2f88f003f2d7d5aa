"""Methods of Batch as whole answers, on a scheduler that runs nothing and a clock that stands."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import batch_v1
from google.protobuf import json_format

from localgcp.access import gate
from localgcp.access.guests import Guest
from localgcp.batch.records import BatchTable, Clock
from localgcp.batch.service import Batch, BatchService
from localgcp.containers.host import ContainerHost
from localgcp.errors import ApiError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from localgcp.projects import local_project_number
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, set_grant

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
NUMBER = local_project_number(PROJECT)
PLACE = f"projects/{NUMBER}/locations/us-central1"
NAME = f"{PLACE}/jobs/j"
SCRIPT = {"script": {"text": "true"}}


class Cloud:
    """Batch by its methods; ``guest`` is who calls."""

    def __init__(self, home: Home) -> None:
        self.store = Store(home.database)
        for api in ("batch", "compute"):
            self.store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        self.store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
        batch = Batch(home, self.store, ContainerHost(home, 0), FaultTable(home.faults), "", "")
        self.entries = batch.entries()
        self.service: BatchService = batch.service
        self.jobs: BatchTable = batch.service.jobs
        self.guest: Guest | None = None

    def call(self, method: str, **request: Any) -> Any:
        """The answer of a method as JSON."""
        kind = getattr(batch_v1, f"{method.title().replace('_', '')}Request")
        answer = getattr(self.service, method)(kind(request), self.guest)
        message = answer._pb if hasattr(answer, "_pb") else answer
        return json_format.MessageToDict(message)

    def create(self, document: Any, job_id: str = "j", request_id: str = "") -> Any:
        job = batch_v1.Job.from_json(json.dumps(document))
        return self.call("create_job", parent=PARENT, job=job, job_id=job_id, request_id=request_id)

    def refusal(self, method: str, **request: Any) -> tuple[str, str]:
        with pytest.raises(ApiError) as told:
            self.call(method, **request)
        return told.value.code.name, told.value.message


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW)
    monkeypatch.setattr(gate, "guest_behind", lambda guest: guest)
    home = Home(tmp_path / "home", tmp_path)
    home.create()
    return Cloud(home)


def job(**group: Any) -> dict[str, Any]:
    return {"taskGroups": [{"taskSpec": {"runnables": [SCRIPT]}, **group}]}


def test_a_job_that_is_being_ended_is_ended_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    scheduler = cloud.service.scheduler
    monkeypatch.setattr(scheduler, "end", lambda found: ended.append(found.name))  # it goes on
    cloud.create(job())
    cancelling = cloud.call("cancel_job", name=NAME)
    assert (cloud.call("cancel_job", name=NAME), "done" in cancelling) == (cancelling, False)
    deleting = cloud.call("delete_job", name=NAME)
    assert (cloud.call("delete_job", name=NAME), "done" in deleting) == (deleting, False)
    assert deleting["name"] != cancelling["name"]
    assert ended == [NAME, NAME]
    operation = cloud.service.operations.get(cancelling["name"])
    assert json_format.MessageToDict(operation) == cancelling | {
        "done": True,
        "response": {"@type": "type.googleapis.com/google.cloud.batch.v1.CancelJobResponse"},
    }


def test_code_of_a_job_calls_what_its_account_may(cloud: Cloud) -> None:
    cloud.create(job())
    cloud.guest = Guest(TRAINER)
    document = batch_v1.Job.from_json(json.dumps(job()))
    task = f"{NAME}/taskGroups/group0/tasks/0"
    calls: list[tuple[str, str, str, dict[str, Any]]] = [
        ("create_job", "jobs.create", PARENT, {"parent": PARENT, "job": document}),
        ("list_jobs", "jobs.list", PARENT, {"parent": PARENT}),
        ("get_job", "jobs.get", NAME, {"name": NAME}),
        ("cancel_job", "jobs.cancel", NAME, {"name": NAME}),
        ("delete_job", "jobs.delete", NAME, {"name": NAME}),
        ("get_task", "tasks.get", NAME, {"name": task}),
        ("list_tasks", "tasks.list", NAME, {"parent": task.rpartition("/tasks")[0]}),
    ]
    for method, permission, on, request in calls:
        text = f"Permission 'batch.{permission}' denied on resource '{on}' (or it may not exist)."
        assert cloud.refusal(method, **request) == ("PERMISSION_DENIED", text)
    set_grant(cloud.store, f"projects/{PROJECT}", "roles/batch.jobsViewer", TRAINER)
    assert cloud.call("get_job", name=NAME)["name"] == NAME
    assert cloud.refusal("delete_job", name=NAME)[0] == "PERMISSION_DENIED"


def test_a_duration_that_is_none_is_refused(cloud: Cloud) -> None:
    made = batch_v1.Job.from_json(json.dumps(job()))
    spec = batch_v1.Job.pb(made).task_groups[0].task_spec
    spec.max_run_duration.seconds = 10**12  # more than 10,000 years
    code, text = cloud.refusal("create_job", parent=PARENT, job=made)
    assert code == "INVALID_ARGUMENT"
    assert text.startswith("Invalid value at 'job': ")
    assert "Duration" in text
