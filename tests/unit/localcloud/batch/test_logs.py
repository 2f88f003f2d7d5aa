"""Logs of jobs of Batch as Cloud Logging has them: which lines, of what, and who may write them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from google.protobuf import json_format

from localgcp.batch import logs
from localgcp.batch.records import BatchJob, BatchTable, State
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.vertex.log_times import times_file
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

BODY: dict[str, Any] = {
    "taskGroups": [{"taskSpec": {}, "taskCount": "1"}],
    "allocationPolicy": {"serviceAccount": {"email": TRAINER}},
    "logsPolicy": {"destination": "CLOUD_LOGGING"},
    "labels": {"team": "red"},
}
TIME = "2026-01-02T03:04:05.000000Z"
JOB = BatchJob("projects/1/locations/us-west1/jobs/j", "j-1", PROJECT, "us-west1", BODY,
               State.SUCCEEDED, [], TIME, TIME)  # fmt: skip


class Logged:
    def __init__(self, home: Home) -> None:
        self.home, self.store, self.jobs = home, Store(home.database), BatchTable(home)

    def put(self, job: BatchJob = JOB, **files: str) -> None:
        """A job with its logs."""
        self.jobs.insert(job)
        folder = self.home.batch / job.uid / "logs"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / f"{name.replace('_', '-')}.log").write_text(text)

    def grant(self, role: str = "roles/logging.logWriter") -> None:
        set_grant(self.store, f"projects/{PROJECT}", role, TRAINER)

    def read(self, **equal: str) -> list[Any]:
        labels = {key.replace("__", "."): value for key, value in equal.items()}
        entries = logs.entries_of(self.home, self.store, self.jobs)(PROJECT, labels)
        return [json_format.MessageToDict(type(each).pb(each)) for each in entries]


@pytest.fixture
def logged(home: Home) -> Logged:
    return Logged(home)


def test_each_line_is_an_entry_of_its_task_or_of_the_agent(logged: Logged) -> None:
    logged.put(task_0="a\nb", agent="ready\n")
    logged.grant()
    resource = {
        "type": "batch.googleapis.com/Job",
        "labels": {"location": "us-west1", "resource_container": f"projects/{PROJECT}",
                   "job_id": "j-1"},
    }  # fmt: skip
    labels = {"team": "red", "job_uid": "j-1", "task_group_name": "group0"}
    whole = {"resource": resource, "severity": "INFO"}
    of_task = whole | {
        "logName": f"projects/{PROJECT}/logs/batch_task_logs",
        "labels": labels | {"task_id": "task/j-1-group0-0/0/0"},
    }
    assert logged.read() == [
        whole | {
            "logName": f"projects/{PROJECT}/logs/batch_agent_logs", "labels": labels,
            "textPayload": "ready", "timestamp": "2026-01-02T03:04:05Z",
            "insertId": "j-1-agent-000000000",
        },
        of_task | {"textPayload": "a", "timestamp": "2026-01-02T03:04:05Z",
                   "insertId": "j-1-task-0-000000000"},
        of_task | {"textPayload": "b", "timestamp": "2026-01-02T03:04:05.001Z",
                   "insertId": "j-1-task-0-000000001"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "text", "lines"),
    [
        (State.SUCCEEDED, "a\nb", ["a", "b"]),
        (State.FAILED, "a\nb\n", ["a", "b"]),
        (State.RUNNING, "a\nb", ["a"]),
        (State.RUNNING, "a\nb\n", ["a", "b"]),
        (State.CANCELLED, "", []),
        (State.CANCELLED, "a\n\nb", ["a", "", "b"]),
    ],
)
def test_a_line_that_is_still_being_written_is_none(
    logged: Logged, state: State, text: str, lines: list[str]
) -> None:
    logged.put(dataclasses.replace(JOB, state=state), task_0=text)
    logged.grant()
    assert [each.get("textPayload", "") for each in logged.read()] == lines


def test_a_line_has_the_time_at_which_the_log_had_grown_by_it(logged: Logged) -> None:
    logged.put()
    logged.grant()
    file = logged.home.batch / "j-1" / "logs" / "task-0.log"
    file.write_bytes(b"a\n\xff\nc\n")
    seconds = (("2", "06"), ("4", "07"), ("6", "08"))
    times = "".join(f"{end} 2026-01-02T03:04:{second}+00:00\n" for end, second in seconds)
    times_file(file).write_text(times)
    found = [(each["textPayload"], each["timestamp"][-3:]) for each in logged.read()]
    assert found == [("a", "06Z"), ("\ufffd", "07Z"), ("c", "08Z")]


def test_a_filter_names_a_job_by_its_uid(logged: Logged) -> None:
    logged.put(task_0="a")
    other = dataclasses.replace(JOB, name=f"{JOB.name}2", uid="j-2")
    logged.put(other, task_0="b")
    logged.grant()
    for key in ("labels__job_uid", "resource__labels__job_id"):
        assert [each["textPayload"] for each in logged.read(**{key: "j-2"})] == ["b"]
    assert logged.read(labels__job_uid="j-3") == []
    assert len(logged.read()) == 2


@pytest.mark.parametrize(
    ("role", "kept"),
    [
        ("roles/logging.logWriter", True), ("roles/logging.admin", True),
        ("roles/logging.viewer", False),
    ],
)  # fmt: skip
def test_an_account_that_may_not_write_logs_has_none(logged: Logged, role: str, kept: bool) -> None:
    logged.put(task_0="a")
    assert logged.read() == []
    logged.grant(role)
    assert bool(logged.read()) is kept


@pytest.mark.parametrize("policy", [{}, {"destination": "PATH", "logsPath": "/x"}])
def test_logs_are_kept_where_the_job_asks_for_it(logged: Logged, policy: Any) -> None:
    logged.put(dataclasses.replace(JOB, body=BODY | {"logsPolicy": policy}), task_0="a")
    logged.grant()
    assert logged.read() == []
