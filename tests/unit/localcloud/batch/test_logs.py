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
