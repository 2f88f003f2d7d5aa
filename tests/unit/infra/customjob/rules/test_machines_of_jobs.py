"""What is told of the machines of a job: place, words, value and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.rules.compute import tpu
from vertex_training.customjob.rules.context import Context
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding

POOLS = ("jobSpec", "workerPoolSpecs")


def job(*pools: dict[str, Any], region: str | None = "us-central1", today: Any = None) -> Job:
    context = Context(region=region, today=today)
    return Job({"jobSpec": {"workerPoolSpecs": list(pools)}}, context)


def on(name: str, accelerator: str = "", count: int | None = None, **more: Any) -> dict[str, Any]:
    machine = {"machineType": name} | ({"acceleratorType": accelerator} if accelerator else {})
    machine |= {} if count is None else {"acceleratorCount": count}
    return {"machineSpec": machine | more}


def at(*field: str, pool: int = 0) -> tuple[str | int, ...]:
    return (*POOLS, pool, *field)


MACHINE, COUNT = ("machineSpec", "machineType"), ("machineSpec", "acceleratorCount")


TYPE, SIZE = at("diskSpec", "bootDiskType", pool=1), at("diskSpec", "bootDiskSizeGb", pool=1)


TOPOLOGIES = "one of 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"
V5E, TOPOLOGY = "ct5lp-hightpu-4t", ("machineSpec", "tpuTopology")


@pytest.mark.parametrize(
    ("given", "missing", "unused"),
    [
        (on(V5E, tpuTopology="2x4"), [], []),
        (on(V5E, tpuTopology="3x3"), [
            Finding(at(*TOPOLOGY), f"not a topology of {V5E}", "3x3", TOPOLOGIES)], []),
        (on(V5E), [
            Finding(at("machineSpec"), f"tpuTopology is missing; {V5E} needs it", "", TOPOLOGIES,
                    "tpuTopology")], []),
        (on("n1-standard-4"), [], []),
        (on("n1-standard-4", tpuTopology="2x2"), [], [
            Finding(at(*TOPOLOGY), "n1-standard-4 has no topology", "2x2", "remove it")]),
        (on("unheard-of-4", tpuTopology="2x2"), [], []),
    ],
)  # fmt: skip
def test_a_topology_is_one_of_a_tpu_that_is_chosen_by_machine_type(
    given: dict[str, Any], missing: list[Finding], unused: list[Finding]
) -> None:
    assert list(tpu.tpu_topology(job(given))) == missing
    assert list(tpu.tpu_topology_unused(job(given))) == unused


def test_a_tpu_job_has_one_pool_with_one_replica() -> None:
    one = on(V5E, tpuTopology="2x2")
    hint = "a larger topology has more chips"
    assert list(tpu.tpu_alone(job(one | {"replicaCount": 2}))) == []  # told of any first pool
    assert list(tpu.tpu_alone(job(on("n1-standard-4"), on("n1-standard-4")))) == []
    pools = (on("n1-standard-4"), {}, one | {"replicaCount": 2}, one)
    second = Finding(at(pool=2), "a TPU job has one worker pool only", "", hint)
    assert list(tpu.tpu_alone(job(*pools))) == [
        second, Finding(at("replicaCount", pool=2), "a TPU pool has one replica", "2", hint),
    ]  # fmt: skip
    second = Finding(at(pool=1), "a TPU job has one worker pool only", "", hint)
    assert list(tpu.tpu_alone(job(on("n1-standard-4"), one | {"replicaCount": 3}))) == [
        second, Finding(at("replicaCount", pool=1), "a TPU pool has one replica", "3", hint),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "is_pod"),
    [
        (on("cloud-tpu", "TPU_V3", 31), False),
        (on("cloud-tpu", "TPU_V3", 32), True),
        (on(V5E, tpuTopology="2x2"), False),
        (on(V5E, tpuTopology="2x4"), True),
        (on(V5E, tpuTopology="9x9"), False),
        (on(V5E), False),
        (on("n1-standard-4", tpuTopology="4x4"), False),
        (on("unheard-of-4", tpuTopology="4x4"), False),
    ],
)
def test_a_pod_of_tpus_is_no_spot_capacity(given: dict[str, Any], is_pod: bool) -> None:
    place = ("jobSpec", "scheduling", "strategy")
    told = Finding(place, "TPU pods cannot be SPOT", "SPOT", "use STANDARD, or a smaller TPU")
    spec = {"workerPoolSpecs": [given]}
    spot = Job({"jobSpec": spec | {"scheduling": {"strategy": "SPOT"}}})
    assert list(tpu.tpu_pod_spot(spot)) == [told] * is_pod
    assert list(tpu.tpu_pod_spot(Job({"jobSpec": spec}))) == []
