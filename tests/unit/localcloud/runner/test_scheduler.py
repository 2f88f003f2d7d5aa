"""Jobs take slots in their order; trials have their own; what is left goes on at the next start."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from localgcp.runner import job
from localgcp.runner.job import SLOTS, STOPPED, JobRun, LocalScheduler
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import wait_until
from tests.unit.localcloud.vertex.rows import job_row


@dataclass
class Run:
    """A job in a slot: it ends when the test lets it, or when it is cancelled."""

    cancelled: threading.Event
    stopping: threading.Event
    over: list[bool | Exception] = field(default_factory=lambda: [True])
    """How each of its tries ends."""
    begun: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def execute(self) -> bool:
        self.begun.set()
        while not (self.go.is_set() or self.cancelled.is_set()):
            self.go.wait(0.01)
        end = self.over.pop(0) if len(self.over) > 1 else self.over[0]
        if isinstance(end, Exception):
            raise end
        return end


class Slots:
    """A scheduler whose jobs are ``Run``s by their ids."""

    def __init__(self, path: Path) -> None:
        self.jobs = JobTable(path)
        self.runs: dict[str, Run] = {}
        self.gone: set[str] = set()
        self.ends: dict[str, list[bool | Exception]] = {}
        self.trials: set[str] = set()
        self.order: list[str] = []
        self.scheduler = self.make()

    def make(self, slots: int = SLOTS) -> LocalScheduler:
        made = LocalScheduler(self.jobs, self.make_run, slots, self.trials.__contains__)
        self.scheduler = made
        return made

    def make_run(
        self, job_id: str, cancelled: threading.Event, stopping: threading.Event
    ) -> JobRun | None:
        self.order.append(job_id)
        if job_id in self.gone:
            return None
        over = self.ends.get(job_id, [True])
        self.runs.setdefault(job_id, Run(cancelled, stopping, over))
        return cast(JobRun, self.runs[job_id])

    def add(self, *ids: str, state: JobState = JobState.QUEUED) -> None:
        for number in ids:
            self.jobs.insert(job_row(number, {}, state=state))

    def submit(self, *ids: str) -> None:
        self.add(*ids)
        for number in ids:
            self.scheduler.submit(number)

    def begun(self, job_id: str) -> Run:
        wait_until(lambda: job_id in self.runs and self.runs[job_id].begun.is_set())
        return self.runs[job_id]

    def job(self, job_id: str) -> JobRecord:
        found = self.jobs.get(job_id)
        assert found is not None
        return found


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Slots]:
    made = Slots(tmp_path / "cloud.sqlite")
    yield made
    for run in made.runs.values():
        run.go.set()
    made.scheduler.stop()


def test_a_job_that_is_gone_frees_its_slot(slots: Slots) -> None:
    slots.gone = {"1"}
    slots.make(1).start()
    slots.submit("1", "2")
    slots.begun("2")
    assert slots.order == ["1", "2"]


def test_a_cancel_ends_a_job_that_waits_at_once(slots: Slots) -> None:
    slots.make(1).start()
    slots.submit("1", "2")
    slots.begun("1")
    slots.jobs.move("2", JobState.CANCELLING)
    slots.scheduler.cancel("2")
    ended = slots.job("2")
    assert (ended.state, ended.error_code, ended.error_message) == (
        JobState.CANCELLED, 1, "The job was cancelled.",
    )  # fmt: skip
    slots.scheduler.cancel("unknown")


def test_a_mistake_of_the_runner_fails_the_job_and_frees_its_slot(
    slots: Slots, capsys: pytest.CaptureFixture[str]
) -> None:
    slots.ends["1"] = [ValueError("bad")]
    slots.make(1).start()
    slots.submit("1", "2")
    slots.begun("1").go.set()
    slots.begun("2")
    failed = slots.job("1")
    assert (failed.state, failed.error_code, failed.error_message) == (
        JobState.FAILED, 13, "Internal error of the local cloud: ValueError: bad",
    )  # fmt: skip
    assert "ValueError: bad" in capsys.readouterr().err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that wait for machines ask again at once."""
    monkeypatch.setattr(job, "_RETRY_SECONDS", 0.02)


@pytest.mark.usefixtures("quick")
def test_a_job_that_waits_for_machines_frees_its_slot_and_tries_again(slots: Slots) -> None:
    slots.ends["1"] = [False, False, True]
    slots.make(1).start()
    slots.submit("1", "2")
    slots.begun("1").go.set()
    slots.begun("2").go.set()
    wait_until(lambda: slots.order.count("1") == 3)
    wait_until(lambda: not slots.scheduler._cancels)
    assert slots.order[:2] == ["1", "2"]


def test_a_cancel_while_a_job_is_parked_or_on_its_way_there_ends_it(slots: Slots) -> None:
    slots.ends["1"] = [False]
    slots.make(1).start()
    slots.submit("1")
    run = slots.begun("1")
    slots.jobs.move("1", JobState.CANCELLING)
    slots.scheduler.cancel("1")
    wait_until(lambda: slots.job("1").state is JobState.CANCELLED)
    assert run.cancelled.is_set()


@pytest.mark.parametrize(
    ("state", "trial", "then", "runs"),
    [
        (JobState.QUEUED, False, JobState.QUEUED, True),
        (JobState.PENDING, False, JobState.QUEUED, True),
        (JobState.RUNNING, False, JobState.FAILED, False),
        (JobState.RUNNING, True, JobState.QUEUED, True),
        (JobState.CANCELLING, False, JobState.CANCELLED, False),
        (JobState.SUCCEEDED, False, JobState.SUCCEEDED, False),
    ],
)
def test_what_an_earlier_server_left_is_settled(
    slots: Slots, state: JobState, trial: bool, then: JobState, runs: bool
) -> None:
    slots.add("1", state=state)
    if trial:
        slots.trials.add("1")
    slots.scheduler.start()
    if runs:
        slots.begun("1")
    found = slots.job("1")
    assert found.state is then
    if state is JobState.RUNNING and not trial:
        assert (found.error_code, found.error_message) == (14, STOPPED)
    assert ("1" in slots.order) is runs


def test_jobs_that_an_earlier_server_left_are_run_in_their_order(slots: Slots) -> None:
    slots.add("3", "1", "2")
    slots.make(1).start()
    for number in ("3", "1", "2"):
        slots.begun(number).go.set()
    assert slots.order == ["3", "1", "2"]
