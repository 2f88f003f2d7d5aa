"""Which job of Batch has its turn, how long it waits, and what an earlier server leaves."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.cloud import batch_v1
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


def test_a_job_that_has_all_it_wants_is_scheduled_and_runs_to_its_end(turns: Turns) -> None:
    turns.add()
    assert turns.admit() in (State.SCHEDULED, State.RUNNING)
    turns.end()
    assert turns.ran == ["j"]
    assert turns.events() == [
        moved("QUEUED", "SCHEDULED"), moved("SCHEDULED", "RUNNING"), moved("RUNNING", "SUCCEEDED"),
    ]  # fmt: skip


def test_what_a_job_lacks_is_said_once_and_it_stays_queued(turns: Turns) -> None:
    turns.wanting = "No machines."
    turns.add()
    assert [turns.admit(), turns.admit()] == [State.QUEUED, State.QUEUED]
    assert (turns.events(), turns.ran) == (["No machines."], [])


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


@pytest.mark.parametrize(
    ("later", "state"),
    [
        (timedelta(days=2), State.QUEUED),
        (timedelta(days=2, microseconds=1), State.FAILED),
    ],
)
def test_a_job_is_queued_for_two_days_at_most(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, later: timedelta, state: State
) -> None:
    turns.wanting = "No machines."
    turns.add()
    at(monkeypatch, later)
    assert turns.admit() is state
    if state is State.FAILED:
        why = "The job was in the state QUEUED for more than 2 days."
        assert turns.events() == [moved("QUEUED", "FAILED", why)]
        assert turns.tasks() == ["UNEXECUTED"]


@pytest.mark.parametrize(
    ("later", "state"),
    [
        (timedelta(seconds=1080), State.SCHEDULED),
        (timedelta(seconds=1080, microseconds=1), State.FAILED),
    ],
)
def test_machines_whose_account_may_not_report_are_waited_for_for_eighteen_minutes(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, later: timedelta, state: State
) -> None:
    set_grant(turns.store, f"projects/{PROJECT}", "roles/batch.jobsEditor", TRAINER)
    turns.add()
    assert [turns.admit(), turns.admit()] == [State.SCHEDULED, State.SCHEDULED]
    at(monkeypatch, later)
    assert turns.admit() is state
    assert turns.ran == []
    if state is State.FAILED:
        why = (
            "Job failed due to no VM has agent reporting correctly within the time window 1080 "
            "seconds."
        )
        assert turns.events() == [moved("QUEUED", "SCHEDULED"), moved("SCHEDULED", "FAILED", why)]
        assert turns.tasks() == ["UNEXECUTED"]


def test_the_eighteen_minutes_begin_when_a_job_has_its_machines(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_grant(turns.store, f"projects/{PROJECT}", "roles/batch.jobsEditor", TRAINER)
    turns.add()
    turns.wanting = "No machines."
    assert turns.admit() is State.QUEUED
    turns.wanting = ""
    at(monkeypatch, timedelta(hours=1))
    assert [turns.admit(), turns.admit()] == [State.SCHEDULED, State.SCHEDULED]


def test_the_highest_priority_comes_first_and_then_the_oldest(turns: Turns) -> None:
    given = (("new", 0, "9"), ("old", 0, "1"), ("low", 1, "2"), ("high", 99, "5"))
    for name, priority, second in given:
        body = {"priority": str(priority)} if priority else {}
        turns.add(name, body=body, time=TIME.replace("05.", f"0{second}."))
    asked: list[str] = []

    def wanting(job: BatchJob) -> str:
        asked.append(job.job_id)
        return "No machines."

    turns.scheduler._wanting = wanting
    turns.scheduler.start()
    wait_until(lambda: len(asked) >= 4)
    turns.scheduler.stop()
    assert asked[:4] == ["high", "low", "old", "new"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_job_that_waits_is_cancelled_or_deleted_at_once(turns: Turns, is_deleted: bool) -> None:
    state = State.DELETING if is_deleted else State.CANCELLING
    job = turns.add(state=state)
    begun = turns.operations.begin(PLACE, "", {}, empty_pb2.Empty())
    turns.jobs.set_operation(job.name, begun.name)
    (files := turns.home.batch / job.uid).mkdir(parents=True)
    turns.scheduler.end(job)
    done = turns.operations.wait(begun.name, 0)
    assert done is not None
    assert done.done
    if is_deleted:
        assert (turns.jobs.get(job.name), turns.tasks(), files.exists()) == (None, [], False)
        assert done.response.Is(empty_pb2.Empty.DESCRIPTOR)
    else:
        assert turns.events() == [moved("CANCELLATION_IN_PROGRESS", "CANCELLED")]
        assert (turns.tasks(), files.exists()) == (["UNEXECUTED"], True)
        kind = batch_v1.CancelJobResponse.pb(batch_v1.CancelJobResponse()).DESCRIPTOR
        assert done.response.Is(kind)


def test_a_job_that_runs_is_told_to_end_and_then_settled(turns: Turns) -> None:
    job = turns.add()
    turns.admit()
    wait_until(lambda: turns.job().state is State.RUNNING)
    turns.jobs.move(job.name, State.CANCELLING, (State.RUNNING,))
    turns.jobs.set_operation(
        job.name, turns.operations.begin(PLACE, "", {}, empty_pb2.Empty()).name
    )
    turns.scheduler.end(job)
    wait_until(lambda: turns.job().state is State.CANCELLED)


def test_a_job_that_was_cancelled_before_its_turn_does_not_run(turns: Turns) -> None:
    job = turns.add(state=State.SCHEDULED)
    turns.jobs.set_operation(
        job.name, turns.operations.begin(PLACE, "", {}, empty_pb2.Empty()).name
    )
    turns.jobs.move(job.name, State.CANCELLING, (State.SCHEDULED,))
    turns.scheduler._admit(job)
    wait_until(lambda: turns.job().state is State.CANCELLED)
    assert turns.ran == []


def test_a_server_that_stops_fails_what_runs_and_leaves_what_waits(turns: Turns) -> None:
    turns.scheduler.start()
    for name in "abc":
        turns.add(name)
        turns.scheduler.wake()
    wait_until(lambda: len(turns.ran) == 2)
    [waits] = {*"abc"} - {*turns.ran}
    wait_until(lambda: [turns.job(each).state for each in turns.ran] == [State.RUNNING] * 2)
    turns.scheduler.stop()
    assert not turns.scheduler._thread.is_alive()
    assert turns.job(waits).state is State.QUEUED
    for each in turns.ran:
        assert turns.events(each)[-1] == moved("RUNNING", "FAILED", STOPPED, each)
        assert turns.tasks(each) == ["UNEXECUTED"]


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
