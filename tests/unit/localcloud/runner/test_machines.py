"""A job waits for machines, gets none, or takes those of its reservation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import JobCancelledError, StartRefusedError
from localgcp.faults.jobs import JobFaults
from localgcp.faults.model import Fault, Kind, Service
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import Store
from localgcp.runner import machines
from localgcp.vertex import capacity
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row

NONE = "STOCKOUT: Resources are insufficient in region: us-central1."
FLEX = {"strategy": "FLEX_START"}


class Waiting(threading.Event):
    """A cancel that comes or not, without that anybody waits for it."""

    def __init__(self, comes: bool = False) -> None:
        super().__init__()
        self.comes = comes
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return self.comes


@pytest.fixture
def table(tmp_path: Path) -> FaultTable:
    return FaultTable(tmp_path / "faults.sqlite")


def ask(
    table: FaultTable, scheduling: dict[str, Any], cancelled: threading.Event
) -> tuple[list[str], str]:
    """What is told before the job starts, and why it does not start."""
    told: list[str] = []
    job = job_row("1", {"scheduling": scheduling})
    try:
        machines.wait_for_machines(job, JobFaults(table), cancelled, told.append)
    except StartRefusedError as error:
        return told, f"{error.code:d} {error.message}"
    return told, ""


def test_a_stock_out_refuses_a_job_at_once(table: FaultTable) -> None:
    table.add(Fault(service=Service.JOBS, kind=Kind.STOCKOUT))
    waiting = Waiting()
    assert ask(table, {}, waiting) == ([], f"8 {NONE}")
    assert waiting.waited == []


def test_a_stock_out_with_seconds_is_over_after_them(table: FaultTable) -> None:
    table.add(Fault(service=Service.JOBS, kind=Kind.STOCKOUT, seconds=7))
    waiting = Waiting()
    assert ask(table, {}, waiting) == ([f"{NONE} Waiting."], "")
    assert waiting.waited == [7]


def test_a_job_that_is_cancelled_while_it_waits_ends(table: FaultTable) -> None:
    table.add(Fault(service=Service.JOBS, kind=Kind.STOCKOUT, seconds=7))
    with pytest.raises(JobCancelledError):
        ask(table, FLEX, Waiting(comes=True))


@pytest.fixture
def claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[bool, list[str], int]]:
    """Whether a job takes machines, what is told of it, and how many are taken after it."""
    jobs, store = JobTable(tmp_path / "cloud.sqlite"), Store(tmp_path / "cloud.sqlite")

    def try_to(plan: capacity.Plan, state: JobState) -> tuple[bool, list[str], int]:
        monkeypatch.setattr(capacity, "plan", lambda *_: plan)
        told: list[str] = []
        job = job_row("1", {}, state=state)
        return machines.claim_machines(store, jobs, job, told.append), told, jobs.used("r")

    return try_to


WAITS = "waiting for machines, the reservation is used up: r has 2"


@pytest.mark.parametrize(
    ("plan", "state", "outcome"),
    [
        (capacity.Plan({"r": 2}, {"r": 2}, ["in r"], ""), JobState.QUEUED, (True, ["in r"], 2)),
        (capacity.Plan({}, {}, [], ""), JobState.PENDING, (True, [], 0)),
        (capacity.Plan({"r": 2}, {"r": 2}, ["no"], "r has 2"), JobState.QUEUED,
         (False, [WAITS], 0)),
        (capacity.Plan({"r": 3}, {"r": 2}, ["no"], ""), JobState.PENDING, (False, [], 0)),
    ],
)  # fmt: skip
def test_a_job_takes_all_machines_of_its_reservation_or_says_once_that_it_waits(
    claim: Callable[..., tuple[bool, list[str], int]],
    plan: capacity.Plan,
    state: JobState,
    outcome: tuple[bool, list[str], int],
) -> None:
    assert claim(plan, state) == outcome
