"""Which job of Batch has its turn, how long it waits, and what an earlier server leaves."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.protobuf import empty_pb2

from localgcp.batch.records import BatchJob, BatchTable, Clock, State, TaskState
from localgcp.batch.scheduler import BatchScheduler
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.vertex.operations import OperationTable
from tests.unit.localcloud.batch.rows import NOW, PLACE, TIME, batch_row
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant, wait_until

STOPPED = "The local cloud was stopped while the job ran; submit it again (a new job)."


class Turns:
    """A scheduler; ``ran`` are the jobs that it runs, which take until ``go``."""

    def __init__(self, home: Home) -> None:
        self.home, self.store, self.jobs = home, Store(home.database), BatchTable(home)
        self.operations = OperationTable(home.database)
        self.ran: list[str] = []
        self.go, self.wanting = threading.Event(), ""
        self.scheduler = BatchScheduler(
            home, self.store, self.jobs, self._run_of, lambda _job: self.wanting
        )
        set_grant(self.store, f"projects/{PROJECT}", "roles/batch.agentReporter", TRAINER)

    def _run_of(self, job: BatchJob) -> Any:
        return _Run(self, job)

    def add(self, job_id: str = "j", state: State = State.QUEUED, **more: Any) -> BatchJob:
        job = batch_row(job_id, state, **more)
        assert self.jobs.insert(job)
        return job

    def admit(self, job_id: str = "j") -> State:
        """Let the job have its turn; its state then."""
        self.scheduler._admit(self.job(job_id))
        return self.job(job_id).state

    def job(self, job_id: str = "j") -> BatchJob:
        found = self.jobs.get(f"{PLACE}/{job_id}")
        assert found is not None
        return found

    def events(self, job_id: str = "j") -> list[str]:
        return [each["description"] for each in self.job(job_id).events]

    def tasks(self, job_id: str = "j") -> list[str]:
        return [task.state for task in self.jobs.tasks(f"u-{job_id}")]

    def end(self) -> None:
        """Let what runs end, and wait for it."""
        self.go.set()
        wait_until(lambda: not self.scheduler._runs)


class _Run:
    """A job that succeeds."""

    def __init__(self, turns: Turns, job: BatchJob) -> None:
        self.turns, self.job = turns, job
        self.ending, self.stopping = threading.Event(), False

    def execute(self) -> None:
        self.turns.ran.append(self.job.job_id)
        jobs, name = self.turns.jobs, self.job.name
        jobs.move(name, State.RUNNING, (State.SCHEDULED,))
        while not self.turns.go.wait(0.01):
            if self.ending.is_set():
                return
        jobs.move(name, State.SUCCEEDED, (State.RUNNING,))


@pytest.fixture
def turns(home: Home, monkeypatch: pytest.MonkeyPatch) -> Turns:
    at(monkeypatch, timedelta())
    return Turns(home)


def at(monkeypatch: pytest.MonkeyPatch, later: timedelta) -> None:
    """Let it be so much later."""

    def now(_clock: Clock) -> datetime:
        return NOW + later

    monkeypatch.setattr(Clock, "now", now)


def moved(origin: str, to: str, why: str = "", job_id: str = "j") -> str:
    return f"Job state is set from {origin} to {to} for job {PLACE}/{job_id}.{why and f' {why}'}"


def test_the_trouble_of_one_job_keeps_no_other_from_its_turn(
    turns: Turns, capsys: pytest.CaptureFixture[str]
) -> None:
    def wanting(job: BatchJob) -> str:
        if job.job_id == "bad":
            raise ZeroDivisionError
        return ""

    turns.scheduler._wanting = wanting
    turns.add("bad", body={"priority": 9})
    turns.add("good")
    turns.scheduler.start()
    wait_until(lambda: turns.ran)
    turns.scheduler.stop()
    assert turns.ran == ["good"]
    assert turns.job("bad").state is State.QUEUED
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_of_three_jobs_two_run_and_the_third_stays_queued(turns: Turns) -> None:
    for name in "abc":
        turns.add(name)
        turns.admit(name)
    assert turns.admit("c") is State.QUEUED
    turns.add("d", State.SCHEDULED)  # of an earlier server
    assert turns.admit("d") is State.SCHEDULED
    wait_until(lambda: sorted(turns.ran) == ["a", "b"])
    turns.end()
    turns.admit("c")
    turns.end()
    assert turns.job("c").state is State.SUCCEEDED


def test_what_an_earlier_server_left_is_settled(turns: Turns) -> None:
    lost = turns.add("lost", State.RUNNING, group={"taskCount": "4"})
    for number, state in enumerate(("RUNNING", "ASSIGNED", "SUCCEEDED")):
        turns.jobs.move_task(lost.uid, number, TaskState(state))
    gone = turns.add("gone", State.DELETING)
    cancelled = turns.add("cancelled", State.CANCELLING)
    for each in (gone, cancelled):
        begun = turns.operations.begin(PLACE, "", {}, empty_pb2.Empty())
        turns.jobs.set_operation(each.name, begun.name)
    turns.wanting = "No machines."
    waits, done = turns.add("waits"), turns.add("done", State.SUCCEEDED)
    turns.scheduler.start()
    turns.scheduler.stop()
    assert turns.events("lost") == [moved("RUNNING", "FAILED", STOPPED, "lost")]
    assert turns.tasks("lost") == ["FAILED", "FAILED", "SUCCEEDED", "UNEXECUTED"]
    for number, was in enumerate(("RUNNING", "ASSIGNED")):
        task = turns.jobs.task(lost.uid, number)
        assert task is not None
        text = f"Task state is updated from {was} to FAILED with exit code 50002."
        assert task.events[-1] == {
            "type": "STATUS_CHANGED", "description": text, "eventTime": TIME,
            "taskState": "FAILED", "taskExecution": {"exitCode": 50002},
        }  # fmt: skip
    assert turns.jobs.get(gone.name) is None
    assert turns.job("cancelled").state is State.CANCELLED
    assert turns.job("done") == done
    assert replace(turns.job("waits"), events=[]) == waits
