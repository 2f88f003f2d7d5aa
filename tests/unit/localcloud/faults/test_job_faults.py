"""Which job meets a stock-out, and which replica is taken away or killed, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.faults.jobs import JobFaults, stockout_message
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.vertex.records import JobRecord
from tests.unit.localcloud.vertex.rows import job_row

NAMES = ["workerpool0-0", "workerpool1-0"]
Add = Callable[..., JobFaults]


@pytest.fixture
def add(tmp_path: Path) -> Add:
    table = FaultTable(tmp_path / "faults.sqlite")

    def one(kind: str, **given: Any) -> JobFaults:
        table.add(Fault.parse(service="jobs", kind=kind, **given))
        return JobFaults(table)

    return one


def job(strategy: str = "", machine: str = "n1-standard-4", accelerator: str = "") -> JobRecord:
    spec: dict[str, Any] = {
        "workerPoolSpecs": [
            {"machineSpec": {"machineType": machine}},
            None,
            {},
            {"machineSpec": {"machineType": machine, "acceleratorType": accelerator}},
        ]
    }
    if strategy:
        spec["scheduling"] = {"strategy": strategy}
    made = job_row("42", spec)
    object.__setattr__(made, "labels", {"team": "vision"})
    return made


def test_a_job_that_says_no_strategy_is_a_standard_one(add: Add) -> None:
    assert add("stockout", match="STANDARD").stockout(job()) is not None
    assert stockout_message("europe-west4") == (
        "STOCKOUT: Resources are insufficient in region: europe-west4."
    )


@pytest.mark.parametrize(
    ("given", "ran", "lost"),
    [
        ({}, 0.0, NAMES),
        ({"seconds": 5}, 4.9, []),
        ({"seconds": 5}, 5.0, NAMES),
        ({"replica": "workerpool1-0"}, 0.0, ["workerpool1-0"]),
        ({"replica": "workerpool1-1"}, 0.0, []),
        ({"match": "other"}, 0.0, []),
    ],
)
def test_a_spot_job_loses_its_machines_when_it_has_run_so_long(
    add: Add, given: dict[str, Any], ran: float, lost: list[str]
) -> None:
    faults = add("preempt", **given)
    assert list(faults.preempted(job("SPOT"), NAMES, ran)) == lost
    assert list(faults.preempted(job("SPOT"), NAMES, ran)) == []


@pytest.mark.parametrize(
    ("given", "name", "ran", "dies"),
    [
        ({}, "workerpool0-0", 0.0, True),
        ({}, "workerpool1-0", 0.0, False),
        ({"replica": "workerpool1-0"}, "workerpool1-0", 0.0, True),
        ({"replica": "workerpool1-0"}, "workerpool0-0", 0.0, False),
        ({"seconds": 5}, "workerpool0-0", 4.9, False),
        ({"seconds": 5}, "workerpool0-0", 5.0, True),
    ],
)
def test_a_replica_is_killed_when_it_has_run_so_long(
    add: Add, given: dict[str, Any], name: str, ran: float, dies: bool
) -> None:
    faults = add("kill", **given)
    assert faults.killed(job(), name, ran) is dies
    assert faults.killed(job(), name, ran) is False
