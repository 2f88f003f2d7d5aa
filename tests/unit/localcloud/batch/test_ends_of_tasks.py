"""A job of Batch from the exit codes of its tasks to its end; no program runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from localgcp.batch.records import BatchJob, BatchTable, Clock, State
from localgcp.batch.run import BatchRun
from localgcp.containers.host import ContainerHost
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner.environment import Folders
from tests.unit.localcloud.batch.rows import NOW, PLACE, batch_row

#: A thread of a job that ends with an exception fails its test.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

AT = "on zones/us-central1-a/instances/N"
FAILED = "Job failed due to task failure. Specifically, task with index {} failed due to the "


class Tried:
    """One try at a task that ends with this code."""

    def __init__(self, code: int | Exception | None, work: Path, run: BatchRun) -> None:
        self._code, self._work, self._run = code, work, run

    def run(self) -> int | None:
        (self._work / "left").touch()
        if isinstance(self._code, Exception):
            raise self._code
        if self._code is None:
            self._run.ending.set()
        return self._code


class Ran:
    """A job whose tries end with these codes; ``disks`` is what each found on its disk."""

    def __init__(self, home: Home, job: BatchJob, *codes: int | Exception | None) -> None:
        self.jobs, self.job = BatchTable(home), job
        assert self.jobs.insert(job)
        self.run = BatchRun(
            job, home=home, store=Store(home.database), jobs=self.jobs, storage_url="",
            api_url="", faults=FaultTable(home.faults), containers=ContainerHost(home, 0),
        )  # fmt: skip
        self.disks: list[list[str]] = []
        self.tries: list[tuple[int, int]] = []
        left = [*codes]

        def attempt(number: int, _node: int, _host: Any, folders: Any, retries: int) -> Tried:
            self.tries.append((number, retries))
            self.disks.append(sorted(each.name for each in folders.work.iterdir()))
            base = home.batch / job.uid
            task = base / "tasks" / str(number)
            assert folders == Folders(task / "work", task / "tmp", base / "gcs")
            return Tried(left.pop(0), folders.work, self.run)

        self.run._attempt = attempt  # pyright: ignore[reportAttributeAccessIssue]

    def events(self) -> list[str]:
        """Of the job."""
        found = self.jobs.get(self.job.name)
        assert found is not None
        return [_even(each["description"]) for each in found.events]

    def tasks(self) -> list[tuple[str, list[str]]]:
        """State of each task, and what became of it."""
        return [
            (task.state, [_even(each["description"]) for each in task.events])
            for task in self.jobs.tasks(self.job.uid)
        ]

    def log(self) -> list[str]:
        lines = self.run.agent.path.read_text().splitlines()
        return [_even(each.partition("] ")[2]) for each in lines]


def _even(text: str) -> str:
    return re.sub(r"instances/\d{1,19}\b", "instances/N", text)


def moved(origin: str, to: str, more: str = f" {AT}") -> str:
    return f"Task state is updated from {origin} to {to}{more}."


def ended(to: str, why: str = "", origin: str = "RUNNING") -> str:
    return f"Job state is set from {origin} to {to} for job {PLACE}/j.{why and f' {why}'}"


BEGUN = [moved("PENDING", "ASSIGNED"), moved("ASSIGNED", "RUNNING")]
RUNS = ended("RUNNING", origin="SCHEDULED")


@pytest.fixture
def ran(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW)

    def make(*codes: int | Exception | None, stopping: bool = False, **more: Any) -> Ran:
        made = Ran(home, batch_row(state=State.SCHEDULED, **more), *codes)
        made.run.stopping = stopping
        made.run.execute()
        return made

    return make


def test_a_mistake_of_the_runner_is_told_and_nothing_hangs(
    ran: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    done = ran(ValueError("x"), maxRetryCount=3)
    why = "Job failed due to task failure. Internal error of the local cloud: ValueError."
    assert done.events() == [RUNS, ended("FAILED", why)]
    [(_, events)] = done.tasks()
    assert events == [*BEGUN, moved("RUNNING", "FAILED", f" {AT} with exit code 50000")]
    assert "ValueError: x" in capsys.readouterr().err


def test_a_mistake_beside_the_tasks_is_told_too(
    ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def machines(_run: BatchRun, _width: int) -> Any:
        raise LookupError("x")

    monkeypatch.setattr(BatchRun, "_machines", machines)
    why = "Internal error of the local cloud: LookupError."
    assert ran().events() == [ended("FAILED", why, "SCHEDULED")]
    assert "LookupError: x" in capsys.readouterr().err


class Slow:
    """A task that runs until its job is ended; each look at it takes ``step``."""

    def __init__(self, run: BatchRun, pass_time: Callable[[], None]) -> None:
        self._run, self._pass_time, self.looks = run, pass_time, 0

    def is_alive(self) -> bool:
        return not self._run.ending.is_set()

    def join(self, _seconds: float) -> None:
        self.looks += 1
        self._pass_time()


A3, ALONE = {"machineType": "a3-highgpu-8g"}, {"reservation": "NO_RESERVATION"}


@pytest.mark.parametrize(
    ("policy", "days"),
    [
        ({"provisioningModel": "STANDARD"}, 14),
        ({"provisioningModel": "SPOT"}, 14),
        ({}, 14),
        ({"provisioningModel": "FLEX_START"}, 7),
        (A3, 14),
        (A3 | {"reservation": "projects/p/zones/z/reservations/r"}, 14),
    ],
)
def test_a_job_runs_for_fourteen_days_at_most_and_seven_where_machines_are_scarce(
    home: Home, monkeypatch: pytest.MonkeyPatch, policy: dict[str, str], days: int
) -> None:
    later = [timedelta(days=days), timedelta(days=days, microseconds=1)]
    now = [NOW]
    monkeypatch.setattr(Clock, "now", lambda _clock: now[0])
    made = Ran(home, batch_row(policy=policy))

    def pass_time() -> None:
        now[0] = NOW + later.pop(0)

    slow = Slow(made.run, pass_time)
    made.run._watch([slow])  # pyright: ignore[reportArgumentType]
    assert slow.looks == 2
    assert made.run._failure == f"The job ran longer than {days} days."
