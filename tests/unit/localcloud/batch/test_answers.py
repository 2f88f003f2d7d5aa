"""Methods of Batch as whole answers, on a scheduler that runs nothing and a clock that stands."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud import batch_v1
from google.protobuf import json_format

from localgcp.access import gate
from localgcp.access.guests import Guest
from localgcp.batch.records import LOST, PREEMPTED, BatchTable, Clock, State, TaskState
from localgcp.batch.service import Batch, BatchService, _page
from localgcp.containers.host import ContainerHost
from localgcp.errors import ApiError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from localgcp.projects import local_project_number
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, set_grant

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
TIME = "2026-01-02T03:04:05.678Z"
STORED = "2026-01-02T03:04:05.678000Z"
NUMBER = local_project_number(PROJECT)
PLACE = f"projects/{NUMBER}/locations/us-central1"
NAME = f"{PLACE}/jobs/j"
COMPUTE_ACCOUNT = f"{NUMBER}-compute@developer.gserviceaccount.com"
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


def whole(uid: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """A job of scripts as the service completes it."""
    return {
        "name": NAME, "uid": uid, "createTime": TIME, "updateTime": TIME,
        "taskGroups": [{
            "name": f"{NAME}/taskGroups/group0", "taskCount": str(count),
            "parallelism": str(count), "taskSpec": {
                "computeResource": {"cpuMilli": "2000", "memoryMib": "2000"},
                "runnables": [SCRIPT],
            },
        }],
        "allocationPolicy": {
            "location": {"allowedLocations": ["regions/us-central1"]},
            "serviceAccount": {"email": COMPUTE_ACCOUNT}, "labels": {"batch-job-id": "j"},
        },
        "status": {
            "state": "QUEUED", "runDuration": "0s",
            "taskGroups": {"group0": {"counts": {"PENDING": str(count)}}},
        },
        **more,
    }  # fmt: skip


def test_a_job_is_completed_as_the_service_does(cloud: Cloud) -> None:
    made = cloud.create(job())
    assert re.fullmatch("j-[0-9a-f-]{36}", made["uid"])
    assert made == whole(made["uid"])
    assert cloud.call("get_job", name=NAME) == made
    assert cloud.call("get_job", name=f"{PARENT}/jobs/j") == made
    unnamed = cloud.create(job(), "")
    assert unnamed["name"] == f"{PLACE}/jobs/job-{unnamed['uid'][2:]}"
    three = cloud.create(job(taskEnvironments=[{}, {}, {}]), "three")
    assert three["taskGroups"][0]["taskCount"] == "3"


@pytest.mark.parametrize(
    ("group", "count", "parallelism"),
    [
        ({"taskCount": "4"}, "4", "4"),
        ({"taskCount": "4", "parallelism": "2"}, "4", "2"),
        ({"taskCount": "5000"}, "5000", "5000"),
        ({"taskCount": "5001"}, "5001", "5000"),
        ({"taskCount": "4", "schedulingPolicy": "IN_ORDER"}, "4", "1"),
        ({"taskCount": "1", "taskEnvironments": [{}, {}]}, "2", "2"),
    ],
)
def test_tasks_run_all_at_once_unless_a_job_says_otherwise(
    cloud: Cloud, group: Any, count: str, parallelism: str
) -> None:
    [made] = cloud.create(job(**group))["taskGroups"]
    assert (made["taskCount"], made["parallelism"]) == (count, parallelism)


def test_what_a_job_gives_stays_and_what_only_the_service_gives_does_not(cloud: Cloud) -> None:
    document = job() | {
        "name": "x", "uid": "y", "priority": 7, "labels": {"a": "b"},
        "allocationPolicy": {
            "location": {"allowedLocations": ["zones/us-central1-a"]}, "labels": {"c": "d"},
            "serviceAccount": {"email": TRAINER},
        },
    }  # fmt: skip
    document["taskGroups"][0]["taskSpec"]["computeResource"] = {"cpuMilli": "500"}
    made = cloud.create(document)
    assert (made["name"], made["priority"], made["labels"]) == (NAME, "7", {"a": "b"})
    assert made["allocationPolicy"] == {
        "location": {"allowedLocations": ["zones/us-central1-a"]},
        "serviceAccount": {"email": TRAINER}, "labels": {"c": "d", "batch-job-id": "j"},
    }  # fmt: skip
    found = made["taskGroups"][0]["taskSpec"]["computeResource"]
    assert found == {"cpuMilli": "500", "memoryMib": "2000"}


def event(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "STATUS_CHANGED", "description": text, "eventTime": TIME, **more}


def test_a_job_that_runs_has_machines_events_and_a_duration(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"machineType": "n1-standard-4", "provisioningModel": "SPOT"}
    document = job(taskCount="2") | {"allocationPolicy": {"instances": [{"policy": policy}]}}
    uid = cloud.create(document)["uid"]
    assert "instances" not in cloud.call("get_job", name=NAME)["status"]["taskGroups"]["group0"]
    assert cloud.jobs.move(NAME, State.SCHEDULED, (State.QUEUED,))
    assert cloud.jobs.move(NAME, State.RUNNING, (State.SCHEDULED,), "Why.")
    assert not cloud.jobs.move(NAME, State.RUNNING, (State.SCHEDULED,))
    text = cloud.jobs.move_task(uid, 0, TaskState.FAILED, "m-0", PREEMPTED)
    assert text == (
        "Task state is updated from PENDING to FAILED on m-0 due to Spot VM preemption with exit "
        "code 50001."
    )
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW + timedelta(seconds=2.5))
    status = cloud.call("get_job", name=NAME)["status"]
    state = f"for job {NAME}."
    assert status == {
        "state": "RUNNING", "runDuration": "2.500s",
        "statusEvents": [
            event(f"Job state is set from QUEUED to SCHEDULED {state}"),
            event(f"Job state is set from SCHEDULED to RUNNING {state} Why."),
        ],
        "taskGroups": {"group0": {
            "counts": {"FAILED": "1", "PENDING": "1"},
            "instances": [{"machineType": "n1-standard-4", "provisioningModel": "SPOT",
                           "taskPack": "1"}],
        }},
    }  # fmt: skip
    first = {
        "name": f"{NAME}/taskGroups/group0/tasks/0",
        "status": {"state": "FAILED", "statusEvents": [
            event(text, taskState="FAILED", taskExecution={"exitCode": 50001}),
        ]},
    }  # fmt: skip
    second = {"name": f"{NAME}/taskGroups/group0/tasks/1", "status": {"state": "PENDING"}}
    group = f"{NAME}/taskGroups/group0"
    assert cloud.call("list_tasks", parent=group) == {"tasks": [first, second]}
    assert cloud.call("list_tasks", parent=group, filter="state=FAILED") == {"tasks": [first]}
    assert cloud.call("get_task", name=f"{group}/tasks/0") == first
    page = cloud.call("list_tasks", parent=group, page_size=1)
    assert page["tasks"] == [first]
    again = cloud.call("list_tasks", parent=group, page_token=page["nextPageToken"])
    assert again == {"tasks": [second]}
    for parent in (f"{NAME}/taskGroups/group1", f"{group}/tasks/0"):
        assert cloud.refusal("list_tasks", parent=parent) == (
            "NOT_FOUND", f"Resource '{parent}' was not found",
        )  # fmt: skip
    for name in (f"{group}/tasks/2", f"{NAME}/taskGroups/group1/tasks/0", group):
        assert cloud.refusal("get_task", name=name) == (
            "NOT_FOUND", f"Resource '{name}' was not found",
        )  # fmt: skip
    cloud.jobs.skip_tasks(uid)
    assert cloud.jobs.counts(uid) == {"FAILED": 1, "UNEXECUTED": 1}
    assert cloud.jobs.move_task(uid, 1, TaskState.RUNNING) == (
        "Task state is updated from UNEXECUTED to RUNNING."
    )
    assert cloud.jobs.move_task(uid, 1, TaskState.FAILED, code=LOST).endswith("exit code 50002.")
    assert cloud.jobs.move_task("j-none", 0, TaskState.RUNNING) == ""


def test_cancelling_and_deleting_are_operations(cloud: Cloud) -> None:
    cloud.create(job())
    found = cloud.call("cancel_job", name=NAME)
    name = found.pop("name")
    about = "type.googleapis.com/google.cloud.batch.v1."
    metadata = {
        "@type": f"{about}OperationMetadata", "createTime": TIME, "target": NAME,
        "apiVersion": "v1",
    }  # fmt: skip
    assert re.fullmatch(rf"{PLACE}/operations/[\w-]+", name)
    assert found == {
        "metadata": metadata | {"verb": "cancel"}, "done": True,
        "response": {"@type": f"{about}CancelJobResponse"},
    }  # fmt: skip
    ended = cloud.call("get_job", name=NAME)["status"]
    assert (ended["state"], ended["taskGroups"]["group0"]["counts"]) == (
        "CANCELLED", {"UNEXECUTED": "1"},
    )  # fmt: skip
    assert cloud.refusal("cancel_job", name=NAME) == (
        "FAILED_PRECONDITION", f"Job {NAME} is in state CANCELLED and cannot be cancelled.",
    )  # fmt: skip
    gone = cloud.call("delete_job", name=NAME)
    assert (gone["metadata"], gone["done"]) == (metadata | {"verb": "delete"}, True)
    assert gone["response"]["@type"] == "type.googleapis.com/google.protobuf.Empty"
    missing = ("NOT_FOUND", f"Resource '{NAME}' was not found")
    for method in ("get_job", "cancel_job", "delete_job"):
        assert cloud.refusal(method, name=NAME) == missing


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


def test_a_request_is_answered_once(cloud: Cloud) -> None:
    one, two = (f"0b6a4c4e-5f0e-4c8e-9d5e-1c5a3f3b2a1{n}" for n in "01")
    made = cloud.create(job(), request_id=one)
    cloud.jobs.move(NAME, State.SCHEDULED, (State.QUEUED,))
    again = cloud.create(job(), request_id=one)
    assert (again["uid"], again["status"]["state"]) == (made["uid"], "SCHEDULED")
    with pytest.raises(ApiError) as told:
        cloud.create(job(taskCount="2"), request_id=one)
    assert (told.value.code.name, told.value.message) == (
        "INVALID_ARGUMENT", f"request_id {one} was used for another request.",
    )  # fmt: skip
    with pytest.raises(ApiError) as told:
        cloud.create(job(), request_id=two)
    assert (told.value.code.name, told.value.message) == (
        "ALREADY_EXISTS", f'Resource "{NAME}" already exists',
    )  # fmt: skip
    gone = cloud.call("delete_job", name=NAME, request_id=two)
    assert cloud.call("delete_job", name=NAME, request_id=two) == gone
    # The answer to the first request is remembered, also where the job is gone.
    assert cloud.create(job(), request_id=one) == made


def test_a_request_is_remembered_for_an_hour(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "0b6a4c4e-5f0e-4c8e-9d5e-1c5a3f3b2a10"
    made = cloud.create(job(), request_id=one)
    hour = timedelta(hours=1)
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW + hour)
    assert cloud.create(job(), request_id=one) == made
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW + hour + timedelta(microseconds=1))
    with pytest.raises(ApiError, match="already exists"):
        cloud.create(job(), request_id=one)


@pytest.mark.parametrize(("size", "count"), [(0, 100), (1, 1), (1000, 1000), (1001, 1000)])
def test_a_page_has_a_hundred_unless_asked_and_a_thousand_at_most(size: int, count: int) -> None:
    request = batch_v1.ListJobsRequest(page_size=size)
    page, token = _page(range(1001), request, "query")
    assert (len(page), token.partition(":")[2]) == (count, str(count))


def test_jobs_are_listed_by_filter_order_and_page(cloud: Cloud) -> None:
    for name, priority in (("a", 3), ("c", 1), ("b", 2)):
        cloud.create(job() | {"priority": priority, "labels": {"n": name}}, name)

    def listed(**request: Any) -> str:
        found = cloud.call("list_jobs", **{"parent": PARENT, **request})
        return "".join(each["name"][-1] for each in found.get("jobs", []))

    assert listed(order_by="name") == "abc"
    assert listed(order_by="name desc") == "cba"
    assert listed(filter="priority=3") == "a"
    assert listed(filter="labels.n=b") == "b"
    assert listed(filter='state="RUNNING"') == ""
    assert listed(filter='status.state="QUEUED"', order_by="name") == "abc"
    assert listed(parent=f"projects/{PROJECT}/locations/-", order_by="name") == "abc"
    assert listed(parent=f"projects/{PROJECT}/locations/us-west1") == ""
    assert len(listed(page_size=2)) == 2
    first = cloud.call("list_jobs", parent=PARENT, order_by="name", page_size=2)
    token = first["nextPageToken"]
    assert listed(order_by="name", page_token=token) == "c"
    for request, text in (
        ({"page_token": token}, "Invalid page token, or one of another request."),
        ({"page_token": f"{token}x", "order_by": "name"},
         "Invalid page token, or one of another request."),
        ({"page_size": -1}, "page_size must not be negative, got -1."),
        ({"order_by": "uid"}, "Invalid order_by: 'uid'."),
        ({"order_by": "name up"}, "Invalid order_by: 'name up'."),
    ):  # fmt: skip
        assert cloud.refusal("list_jobs", parent=PARENT, **request) == ("INVALID_ARGUMENT", text)
    for name in ("x", f"{NAME}/tasks/0", f"{NAME}/taskGroups/group0/tasks/x"):
        assert cloud.refusal("get_task", name=name) == (
            "INVALID_ARGUMENT", f"Invalid resource name: {name!r}.",
        )  # fmt: skip


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


def test_a_job_that_ended_is_kept_for_sixty_days(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = cloud.create(job())["uid"]
    cloud.jobs.move(NAME, State.FAILED, (State.QUEUED,))
    found = cloud.jobs.of_uid(uid)
    assert found is not None
    assert (found.job_id, found.end_time, found.start_time) == ("j", STORED, None)
    for later, kept in ((timedelta(days=60), True), (timedelta(days=60, seconds=1), False)):
        monkeypatch.setattr(Clock, "now", lambda _clock, later=later: NOW + later)
        assert ("jobs" in cloud.call("list_jobs", parent=PARENT)) is kept
    assert (cloud.jobs.of_uid(uid), cloud.jobs.tasks(uid)) == (None, [])


def test_the_name_of_a_job_is_free_after_sixty_days(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = cloud.create(job())["uid"]
    cloud.jobs.move(NAME, State.FAILED, (State.QUEUED,))
    later = timedelta(days=60, seconds=1)
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW + later)
    assert cloud.create(job())["uid"] != uid


def test_logs_of_jobs_are_those_of_their_type_of_resource(cloud: Cloud) -> None:
    cloud.create(job() | {"logsPolicy": {"destination": "CLOUD_LOGGING"}})
    [(kind, entries)] = cloud.entries.items()
    assert (kind, [*entries(PROJECT, {})]) == ("batch.googleapis.com/Job", [])


def test_a_note_stands_once_among_the_events(cloud: Cloud) -> None:
    cloud.create(job())
    for text in ("No quota.", "No quota.", "No machines."):
        cloud.jobs.note(NAME, text)
    cloud.jobs.note(f"{NAME}x", "Nobody.")
    assert cloud.call("get_job", name=NAME)["status"]["statusEvents"] == [
        {"type": "OPERATIONAL_INFO", "description": text, "eventTime": TIME}
        for text in ("No quota.", "No machines.")
    ]


def test_a_definition_has_a_mebibyte_at_most(cloud: Cloud) -> None:
    large = job()
    large["taskGroups"][0]["taskSpec"]["runnables"] = [{"script": {"text": "x" * (1 << 20)}}]
    with pytest.raises(ApiError) as told:
        cloud.create(large)
    assert told.value.message == "The definition of a job can have at most 1 MiB."


def test_a_duration_that_is_none_is_refused(cloud: Cloud) -> None:
    made = batch_v1.Job.from_json(json.dumps(job()))
    spec = batch_v1.Job.pb(made).task_groups[0].task_spec
    spec.max_run_duration.seconds = 10**12  # more than 10,000 years
    code, text = cloud.refusal("create_job", parent=PARENT, job=made)
    assert code == "INVALID_ARGUMENT"
    assert text.startswith("Invalid value at 'job': ")
    assert "Duration" in text
