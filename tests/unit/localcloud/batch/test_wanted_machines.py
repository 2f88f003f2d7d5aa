"""What a job of Batch lacks while it is queued: quota, a reservation's machines, a stock-out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localgcp.batch.capacity import Capacity
from localgcp.batch.records import BatchJob, BatchTable, State
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from tests.unit.localcloud.batch.rows import batch_row
from tests.unit.localcloud.conftest import PROJECT
from tests.unit.localcloud.vertex.estate import Estate

RESERVATION = f"projects/{PROJECT}/zones/us-central1-a/reservations/cpu"
T4 = [{"type": "nvidia-tesla-t4", "count": "2"}]


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
        ({"policy": {"machineType": "a2-highgpu-4g"}}, "NVIDIA_A100_GPUS", 4),
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
