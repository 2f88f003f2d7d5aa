"""All that ``vt local status`` shows of a local cloud, line by line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from localgcp import alerting, lifecycle
from localgcp.batch.records import BatchJob, BatchTable, State, TaskState
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.inventory.store import BUCKET, BUDGET, ENDPOINT, Store
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord, TuningTable
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training_cli.local import status

TIME = "2026-11-21T10:00:00.000000Z"


def shown(home: Home, capsys: pytest.CaptureFixture[str]) -> tuple[bool, list[str]]:
    """Whether it is up, and the lines that are told without their padding."""
    up = status.show(home)
    return up, [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def serve(monkeypatch: pytest.MonkeyPatch, info: ServerInfo | None, *, answers: bool) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    monkeypatch.setattr(lifecycle, "healthy", lambda _: answers)


def fill(home: Home) -> None:
    """One of each thing that a status shows."""
    store = Store(home.database)
    for name in ("a", "b"):
        store.put(BUCKET, name, "local-x", {}, {"name": name})
    store.put(BUDGET, "budget", "local-x", {"displayName": "month [b]"}, {})
    place = "projects/local-x/locations/us-central1/endpoints"
    deployed = [{"id": "1", "modelVersionId": "3"}, {"id": "2", "modelVersionId": "4"}]
    outputs = {"displayName": "e", "trafficSplit": '{"1": 100}', "deployedModels": deployed}
    store.put(ENDPOINT, f"{place}/77", "local-x", {}, outputs)
    for number in range(7):
        time = datetime(2026, 11, 21, 10, number, tzinfo=UTC)
        labels = {"job_id": str(number)} if number < 6 else {}
        note = alerting.Notification(time, "p", f"alert {number}", "email x@y.z", labels, "text")
        alerting.write_notification(home.notifications, note, str(number))


def fill_jobs(home: Home) -> None:
    jobs, tuning, batch = (
        JobTable(home.database),
        TuningTable(home.database),
        BatchTable(home),
    )
    failed = {"error_message": "exit code 3", "create_time": TIME, "display_name": "train"}
    jobs.insert(replace(job_row("11", {}, state=JobState.FAILED), **failed))
    row = {**vars(job_row("7", {})), "display_name": "tuned", "state": JobState.RUNNING}
    tuning.insert(TuningRecord(**{**row, "request": {"maxTrialCount": 4}}))
    tuning.insert(
        TuningRecord(**{**row, "job_id": "8", "error_message": "no trial", "create_time": TIME})
    )
    trial = replace(job_row("71", {}, state=JobState.SUCCEEDED), create_time=TIME)
    tuning.add_trial(TrialRecord("7", 1, "71", trial.name, {}, TrialState.SUCCEEDED), trial)
    body = {"taskGroups": [{"taskCount": "2"}]}
    for number, state in enumerate((State.QUEUED, State.RUNNING, State.FAILED), 1):
        name = f"projects/1/locations/us-central1/jobs/b{number}"
        event = {"description": f"why {number}"}
        events = [{"description": "first"}, event] if number < 3 else []
        made = BatchJob(name, f"u{number}", "local-x", "us-central1", body, state, events, TIME,
                        TIME)  # fmt: skip
        assert batch.insert(made)
    batch.move_task("u2", 0, TaskState.SUCCEEDED)


def test_everything_that_is_there_has_a_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, None, answers=False)
    faults = FaultTable(home.faults)
    for kind in ("preempt", "kill"):
        faults.add(Fault(service="jobs", kind=kind))
    fill(home)
    fill_jobs(home)
    up, lines = shown(home, capsys)
    assert up is False
    assert lines == [
        "server: not running",
        f"files: {home.root}",
        "faults: 2 active (`vt local fault list` shows them)",
        "RESOURCES COUNT",
        f"{BUDGET} 1",
        f"{BUCKET} 2",
        f"{ENDPOINT} 1",
        "ENDPOINT ID DEPLOYED",
        "e 77 1 (version 3): 100 %",
        "2 (version 4): 0 %",
        f"notifications: 7 in {home.notifications} "
        "(stand-in of the local cloud: no notification is sent)",
        "TIME ALERT CHANNEL JOB",
        *(f"2026-11-21 10:0{n}:00 alert {n} email x@y.z {n}" for n in range(2, 6)),
        "2026-11-21 10:06:00 alert 6 email x@y.z",
        "alert not evaluated locally: month [b] (the local cloud has no costs)",
        "JOB KIND STATE DONE CREATED WHY ID",
        *lines[-7:],
    ]
    assert {line for line in lines[-7:] if not line.startswith("tuned tuning job RUNNING 1/4")} == {
        "b1 Batch job QUEUED 0/2 2026-11-21T10:00:00 why 1 b1",
        "b2 Batch job RUNNING 1/2 2026-11-21T10:00:00 b2",
        "b3 Batch job FAILED 0/2 2026-11-21T10:00:00 b3",
        "train job FAILED 2026-11-21T10:00:00 exit code 3 11",
        "test job SUCCEEDED 2026-11-21T10:00:00 71",
        "tuned tuning job RUNNING 0/0 2026-11-21T10:00:00 no trial 8",
    }
