"""What a job of Batch lacks while it is queued: quota, a reservation's machines, a stock-out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from localgcp.batch.capacity import Capacity
from localgcp.batch.records import BatchJob, BatchTable, State
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, clear, inject
from localgcp.home import Home
from localgcp.inventory.store import Store
from tests.unit.localcloud.batch.rows import batch_row
from tests.unit.localcloud.conftest import PROJECT
from tests.unit.localcloud.vertex.estate import Estate

RESERVATION = f"projects/{PROJECT}/zones/us-central1-a/reservations/cpu"
T4 = [{"type": "nvidia-tesla-t4", "count": "2"}]
H100 = [{"type": "nvidia-h100-80gb", "count": "8"}]


class Asked:
    """Capacity over one home; ``quotas`` is what Compute Engine answers."""

    def __init__(self, home: Home) -> None:
        self.home, self.jobs = home, BatchTable(home)
        self.quotas: Any = None
        self.requests: list[tuple[str, str, bytes]] = []
        store, faults = Store(home.database), FaultTable(home.faults)
        self.capacity = Capacity(store, self.jobs, faults, self._ask)

    def _ask(self, verb: str, target: str, body: bytes) -> bytes | None:
        self.requests.append((verb, target, body))
        return self.quotas if self.quotas is None else json.dumps({"quotas": self.quotas}).encode()

    def wants(self, job: BatchJob) -> str:
        return self.capacity.wanting(job)


@pytest.fixture
def asked(home: Home) -> Asked:
    return Asked(home)


@pytest.mark.parametrize(
    ("job", "metric", "wanted"),
    [
        ({}, "CPUS", 2),
        ({"group": {"taskCount": "4", "parallelism": "3"}}, "CPUS", 6),
        ({"group": {"taskCount": "2", "parallelism": "3"}}, "CPUS", 4),
        ({"computeResource": {"cpuMilli": "500"}}, "CPUS", 0.5),
        ({"policy": {"accelerators": T4}}, "NVIDIA_T4_GPUS", 2),
        ({"policy": {"accelerators": H100}}, "NVIDIA_H100_80GB_GPUS", 8),
        (
            {"policy": {"accelerators": T4}, "group": {"taskCount": "3", "parallelism": "3"}},
            "NVIDIA_T4_GPUS",
            6,
        ),
        (
            {"policy": {"accelerators": T4, "provisioningModel": "SPOT"}},
            "PREEMPTIBLE_NVIDIA_T4_GPUS",
            2,
        ),
        (
            {"policy": {"accelerators": T4, "provisioningModel": "PREEMPTIBLE"}},
            "PREEMPTIBLE_NVIDIA_T4_GPUS",
            2,
        ),
        (
            {"policy": {"accelerators": T4, "provisioningModel": "FLEX_START"}},
            "NVIDIA_T4_GPUS",
            2,
        ),
        ({"policy": {"machineType": "a2-highgpu-4g"}}, "NVIDIA_A100_GPUS", 4),
        ({"policy": {"machineType": "a3-megagpu-8g"}}, "NVIDIA_H100_MEGA_80GB_GPUS", 8),
        ({"policy": {"machineType": "g2-standard-24"}}, "NVIDIA_L4_GPUS", 2),
    ],
)
def test_a_job_takes_processors_and_accelerators_of_all_its_machines(
    asked: Asked, job: dict[str, Any], metric: str, wanted: float
) -> None:
    made = batch_row(**job)
    asked.quotas = [{"metric": metric, "limit": wanted + 7, "usage": 7.0}]
    assert asked.wants(made) == ""
    asked.quotas = [{"metric": metric, "limit": wanted + 6.75, "usage": 7.0}]
    assert asked.wants(made) == (
        "Quota checking process decided to delay scheduling for the job u-j due to inadequate "
        f"quotas [Quota: {metric}, limit: {wanted + 6.75:g}, usage: 7, wanted: {wanted:g}.]."
    )
    target = f"/compute/v1/projects/{PROJECT}/regions/us-central1"
    assert asked.requests == [("GET", target, b"")] * 2


def test_a_quota_that_is_not_known_is_none(asked: Asked) -> None:
    gpu = batch_row(policy={"accelerators": T4})
    assert asked.wants(gpu) == ""
    for quotas in ([], [{"metric": "CPUS", "limit": 2}], [{"metric": "IN_USE_ADDRESSES"}]):
        asked.quotas = quotas
        assert asked.wants(gpu) == ""
    asked.quotas = [{"metric": "CPUS"}]
    assert asked.wants(gpu).endswith(" [Quota: CPUS, limit: 0, usage: 0, wanted: 2.].")


def test_a_reservation_is_there_is_of_the_machine_and_has_machines_left(
    asked: Asked, home: Home
) -> None:
    def job(job_id: str = "j", state: State = State.QUEUED, count: str = "1", **more: Any) -> Any:
        policy = {"machineType": "n1-standard-4", "reservation": RESERVATION, **more}
        group = {"taskCount": count, "parallelism": count}
        return batch_row(job_id, state, policy=policy, group=group)

    missing = "The reservation {} does not exist, or is not shared with the project."
    assert asked.wants(job()) == missing.format(RESERVATION)
    Estate(home.root).reservation(count=3)
    assert asked.wants(job(count="3")) == ""
    short = RESERVATION.removeprefix(f"projects/{PROJECT}/")
    assert asked.wants(job(reservation=short)) == ""
    for name in ("zones/us-central1-a/reservations/other", "cpu", "../../x"):
        assert asked.wants(job(reservation=name)) == missing.format(name)
    for none in ("", "NO_RESERVATION"):
        assert asked.wants(job(count="9", reservation=none)) == ""
    assert asked.wants(job(machineType="n1-standard-8")) == (
        f"The reservation {RESERVATION} is of n1-standard-4, the job asks for n1-standard-8."
    )
    assert asked.wants(job(accelerators=T4)) == (
        f"The reservation {RESERVATION} is of n1-standard-4, the job asks for n1-standard-4 with 2 "
        "x NVIDIA_TESLA_T4."
    )
    assert asked.wants(job(count="4")) == (
        f"The reservation {RESERVATION} is used up: 0 of 3 machines."
    )
    for number, state in enumerate((State.QUEUED, State.SUCCEEDED, State.SCHEDULED, State.RUNNING)):
        asked.jobs.insert(job(f"other-{number}", state))
    asked.jobs.insert(job("elsewhere", State.RUNNING, reservation="zones/z/reservations/cpu"))
    assert asked.wants(job()) == ""
    assert asked.wants(job(count="2")) == (
        f"The reservation {RESERVATION} is used up: 2 of 3 machines."
    )


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def add(seconds: float) -> None:
        now[0] += seconds

    return add


STOCKOUT = (
    "VM in Managed Instance Group meets error: STOCKOUT: Resources are insufficient in region: "
    "us-central1."
)


def test_a_stock_out_lasts_as_long_as_it_says(
    asked: Asked, home: Home, pass_time: Callable[[float], None]
) -> None:
    inject(home, Fault.parse(service="jobs", kind="stockout", match="j", seconds=30))
    assert asked.wants(batch_row()) == STOCKOUT
    pass_time(29.5)
    assert asked.wants(batch_row()) == STOCKOUT
    pass_time(0.5)
    assert asked.wants(batch_row()) == ""
    assert asked.wants(batch_row()) == ""


def test_a_stock_out_without_an_end_lasts_until_it_is_cleared(
    asked: Asked, home: Home, pass_time: Callable[[float], None]
) -> None:
    fault = inject(home, Fault.parse(service="jobs", kind="stockout", match="u-j"))
    other = batch_row("other")
    assert (asked.wants(batch_row()), asked.wants(other)) == (STOCKOUT, "")
    pass_time(1e9)
    assert asked.wants(batch_row()) == STOCKOUT
    clear(home, fault)
    assert asked.wants(batch_row()) == ""
