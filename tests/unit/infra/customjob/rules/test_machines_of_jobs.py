"""What is told of the machines of a job: place, words, value and what to write instead."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from vertex_training.customjob.rules.compute import machines, tpu
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
ACCELERATOR = ("machineSpec", "acceleratorType")
ON_N1 = (
    "NVIDIA_TESLA_T4 with count 1 or 2 or 4, NVIDIA_TESLA_P4 with count 1 or 2 or 4, "
    "NVIDIA_TESLA_P100 with count 1 or 2 or 4, NVIDIA_TESLA_V100 with count 1 or 2 or 4 or 8"
)


@pytest.mark.parametrize(
    ("name", "count", "hint"),
    [
        ("n1-standard-4", -1, ON_N1),
        ("n2-standard-8", -2, "remove it"),
        ("unheard-of-4", -1, "remove it"),
    ],
)
def test_a_negative_count_is_told_with_those_that_there_are(
    name: str, count: int, hint: str
) -> None:
    found = list(machines.accelerator_count(job(on(name, "", count))))
    assert found == [Finding(at(*COUNT), "must be at least 1", str(count), hint)]


@pytest.mark.parametrize(
    ("machine", "what", "hint"),
    [
        (on("g2-standard-4", "NVIDIA_L4", 1), "", ""),
        (on("g2-standard-4", "NVIDIA_L4", 4), "g2-standard-4 takes 1 of NVIDIA_L4",
         "4 of them: g2-standard-48"),
        (on("g2-standard-24", "NVIDIA_L4", 1), "g2-standard-24 takes 2 of NVIDIA_L4",
         "1 of them: g2-standard-4, g2-standard-8, g2-standard-12, g2-standard-16"),
        # Nobody has three of them, and the family of A100 machines is one.
        (on("g2-standard-4", "NVIDIA_L4", 3), "g2-standard-4 takes 1 of NVIDIA_L4",
         "NVIDIA_L4 with count 1"),
        (on("a2-highgpu-1g", "NVIDIA_TESLA_A100", 16),
         "a2-highgpu-1g takes 1 of NVIDIA_TESLA_A100", "16 of them: a2-megagpu-16g"),
        (on("n1-standard-4", "NVIDIA_TESLA_T4", 8),
         "n1-standard-4 takes 1, 2, 4 of NVIDIA_TESLA_T4", ON_N1),
        # Told by other rules: another accelerator, none, a machine that nobody has.
        (on("n1-standard-4", "NVIDIA_L4", 3), "", ""),
        (on("g2-standard-4", "NVIDIA_L4"), "", ""),
        (on("unheard-of-4", "NVIDIA_L4", 3), "", ""),
    ],
)  # fmt: skip
def test_another_count_is_told_with_the_machines_that_have_it(
    machine: dict[str, Any], what: str, hint: str
) -> None:
    wanted = [Finding(at(*COUNT), what, str(machine["machineSpec"].get("acceleratorCount")), hint)]
    assert list(machines.accelerator_count(job(machine))) == (wanted if what else [])


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "missing"),
    [
        ("g2-standard-4", "NVIDIA_L4", 1, []),
        ("g2-standard-4", "NVIDIA_L4", None, ["acceleratorCount"]),
        ("g2-standard-4", "", 1, ["acceleratorType"]),
        ("g2-standard-4", "", None, ["acceleratorType", "acceleratorCount"]),
        ("n1-standard-4", "", None, []),
        ("unheard-of-4", "", None, []),
    ],
)
def test_a_machine_made_for_an_accelerator_names_it_with_its_count(
    name: str, accelerator: str, count: int | None, missing: list[str]
) -> None:
    found = list(machines.accelerator_required(job(on(name, accelerator, count))))
    assert found == [
        Finding(at("machineSpec"), f"{field} is missing; {name} needs it", "",
                "NVIDIA_L4 with count 1", field)
        for field in missing
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("accelerator", "count", "missing"),
    [
        ("NVIDIA_TESLA_T4", 1, ""),
        ("NVIDIA_TESLA_T4", None, "acceleratorCount"),
        ("NVIDIA_TESLA_T4", 0, "acceleratorCount"),
        ("", 1, "acceleratorType"),
        ("", None, ""),
        ("", -1, ""),
    ],
)
def test_an_accelerator_and_its_count_are_given_together(
    accelerator: str, count: int | None, missing: str
) -> None:
    found = list(machines.accelerator_pair(job(on("n1-standard-4", accelerator, count))))
    hint = "give type and count, or neither"
    wanted = Finding(at("machineSpec"), f"{missing} is missing", "", hint, missing)
    assert found == ([wanted] if missing else [])
    zero = list(machines.accelerator_zero(job(on("n1-standard-4", accelerator, count))))
    assert zero == []


def test_a_count_of_zero_alone_is_told() -> None:
    what = "says the same as leaving it out"
    assert list(machines.accelerator_zero(job({}, on("n1-standard-4", "", 0)))) == [
        Finding(at(*COUNT, pool=1), what, "0", "remove it")
    ]


L4_REGIONS = (
    "regions: asia-northeast3, asia-south1, asia-southeast1, europe-west2, europe-west4, "
    "me-central2, northamerica-northeast2, us-central1, us-east1, us-east4, us-west1"
)


@pytest.mark.parametrize(
    ("machine", "region", "place", "value", "hint"),
    [
        (on("g2-standard-4", "NVIDIA_L4", 1), "us-west1", (), "", ""),
        (on("g2-standard-4", "NVIDIA_L4", 1), None, (), "", ""),
        (on("n1-standard-4"), "us-west3", (), "", ""),
        (on("g2-standard-4", "NVIDIA_L4", 1), "us-west3", ACCELERATOR, "NVIDIA_L4", L4_REGIONS),
        (on("ct5lp-hightpu-4t"), "us-west1", (), "", ""),
        (on("ct5lp-hightpu-4t"), "us-west3", MACHINE, "ct5lp-hightpu-4t",
         "regions: us-central1, us-east1, us-west1, us-west4"),
    ],
)  # fmt: skip
def test_a_region_without_the_accelerator_is_told_with_those_that_have_it(
    machine: dict[str, Any], region: str | None, place: Any, value: str, hint: str
) -> None:
    what = f"{region} does not offer this accelerator for training"
    wanted = [Finding(at(*place), what, value, hint)] if place else []
    assert list(machines.accelerator_region(job(machine, region=region))) == wanted


@pytest.mark.parametrize(
    ("machine", "region", "hint"),
    [
        (on("a2-megagpu-16g"), "us-central1", ""),
        (on("a2-megagpu-16g"), "me-west1", "regions: asia-southeast1, europe-west4, us-central1"),
        # Where no accelerator is asked for, what matters is the machine.
        (on("a2-megagpu-16g"), "us-west3", "regions: asia-southeast1, europe-west4, us-central1"),
        (on("a2-megagpu-16g"), "us-south1", ""),
        (on("a2-megagpu-16g"), None, ""),
        (on("ct5lp-hightpu-4t"), "us-south1", ""),
        (on("unheard-of-4"), "us-south1", ""),
    ],
)
def test_a_region_without_the_machine_type_is_told_with_those_that_have_it(
    machine: dict[str, Any], region: str | None, hint: str
) -> None:
    what, name = f"{region} was not seen to have this machine type", "a2-megagpu-16g"
    wanted = [Finding(at(*MACHINE), what, name, hint)] if hint else []
    assert list(machines.machine_region(job(machine, region=region))) == wanted


def test_several_accelerators_are_told_at_the_last_kind_that_begins() -> None:
    t4, l4 = on("n1-standard-4", "NVIDIA_TESLA_T4", 1), on("g2-standard-4", "NVIDIA_L4", 1)
    what = "several accelerators in one job need one zone that has them all"
    assert list(machines.several_accelerators(job(t4, l4, on("n1-standard-4"), t4))) == [
        Finding(at(*ACCELERATOR, pool=1), what, "NVIDIA_L4, NVIDIA_TESLA_T4", "prefer one kind")
    ]
    assert list(machines.several_accelerators(job(t4, on("n1-standard-4"), t4))) == []


@pytest.mark.parametrize(("day", "is_told"), [(14, False), (15, True), (16, True)])
def test_an_accelerator_is_told_from_the_day_its_support_ends(day: int, is_told: bool) -> None:
    p100 = on("n1-standard-4", "NVIDIA_TESLA_P100", 1)
    given = job(p100, today=datetime.date(2026, 9, day))
    hint = "NVIDIA_TESLA_T4 and NVIDIA_TESLA_V100 go on the same machines"
    what = "its support ended on 2026-09-15"
    wanted = [Finding(at(*ACCELERATOR), what, "NVIDIA_TESLA_P100", hint)] * is_told
    assert list(machines.accelerator_retired(given)) == wanted


@pytest.mark.parametrize(("count", "is_told"), [(None, True), (0, True), (1, False), (2, True)])
def test_a_part_of_a_gpu_is_one(count: int | None, is_told: bool) -> None:
    given = job(on("a3-highgpu-1g", "NVIDIA_H100_80GB", count, gpuPartitionSize="1g.10gb"))
    hint = "acceleratorCount: 1, or no gpuPartitionSize"
    place = at("machineSpec", "gpuPartitionSize")
    wanted = [Finding(place, "needs acceleratorCount 1", str(count or 0), hint)] * is_told
    assert list(machines.gpu_partition(given)) == wanted
    assert list(machines.gpu_partition(job(on("a3-highgpu-1g", "", count)))) == []


def disk(machine: str, **fields: Any) -> Job:
    return job({}, on(machine) | {"diskSpec": fields})


TYPE, SIZE = at("diskSpec", "bootDiskType", pool=1), at("diskSpec", "bootDiskSizeGb", pool=1)


@pytest.mark.parametrize(
    ("machine", "kind", "what", "hint"),
    [
        ("n1-standard-4", "pd-ssd", "", ""),
        ("n1-standard-4", "pd-standard", "", ""),
        *((machine, "hyperdisk-balanced", f"{machine} has no Hyperdisk Balanced", "pd-ssd")
          for machine in ("n1-standard-4", "e2-standard-4")),
        ("n2-standard-4", "hyperdisk-balanced", "", ""),
        ("a4-highgpu-8g", "hyperdisk-balanced", "", ""),
        *((machine, kind, f"{machine} has Hyperdisk alone", "hyperdisk-balanced")
          for machine in ("a4-highgpu-8g", "a4x-highgpu-4g", "a3-ultragpu-8g")
          for kind in ("pd-ssd", "pd-standard")),
        ("a3-highgpu-8g", "pd-ssd", "", ""),
    ],
)  # fmt: skip
def test_a_boot_disk_is_one_that_the_machine_can_have(
    machine: str, kind: str, what: str, hint: str
) -> None:
    wanted = [Finding(TYPE, what, kind, hint)] if what else []
    assert list(machines.disk_machine(disk(machine, bootDiskType=kind))) == wanted
    assert list(machines.disk_type(disk(machine, bootDiskType=kind))) == []


def test_a_boot_disk_of_another_type_is_told_with_those_there_are() -> None:
    what, hint = (
        "not a boot disk of training jobs",
        "one of pd-ssd, pd-standard, hyperdisk-balanced",
    )
    for kind in ("pd-extreme", ""):
        found = list(machines.disk_type(disk("n1-standard-4", bootDiskType=kind)))
        assert found == [Finding(TYPE, what, kind, hint)]
    assert list(machines.disk_type(disk("n1-standard-4"))) == []


@pytest.mark.parametrize(
    ("size", "is_told"), [(0, False), (99, True), (100, False), (64_000, False), (64_001, True)]
)
def test_a_boot_disk_has_100_to_64000_gb(size: int, is_told: bool) -> None:
    hint = "leave it out for 100; data to keep belongs into baseOutputDirectory"
    wanted = [Finding(SIZE, "must be 100 to 64,000 GB", str(size), hint)] * is_told
    assert list(machines.disk_size(disk("n1-standard-4", bootDiskSizeGb=size))) == wanted


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("", "", ""),
        ("n1-standard-4", "", ""),
        ("n1-standart-4", "not a machine type of training jobs", "did you mean 'n1-standard-4'?"),
        ("unheard-of", "not a machine type of training jobs",
         "`vt catalogue` lists what there is"),
    ],
)  # fmt: skip
def test_a_machine_type_is_one_of_training_jobs(name: str, what: str, hint: str) -> None:
    wanted = [Finding(at(*MACHINE), what, name, hint)] if what else []
    assert list(machines.machine_type(job(on(name)))) == wanted


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


@pytest.mark.parametrize(
    ("count", "is_told"), [(0, False), (8, False), (9, True), (32, False), (40, True), (64, False)]
)
def test_a_tpu_has_eight_cores_or_a_multiple_of_32(count: int, is_told: bool) -> None:
    hint = "8 is one machine, 32 the smallest pod"
    wanted = [Finding(at(*COUNT), "must be 8, or a multiple of 32", str(count), hint)] * is_told
    assert list(tpu.tpu_count(job(on("cloud-tpu", "TPU_V2", count)))) == wanted
    assert list(tpu.tpu_count(job(on("cloud-tpu", "NVIDIA_L4", count)))) == []


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


@pytest.mark.parametrize(
    ("count", "region", "is_told"),
    [
        (32, "us-central1", False),
        (32, "asia-east1", True),
        (31, "asia-east1", False),
        (32, None, False),
    ],
)
def test_pods_of_tpus_are_in_few_regions(count: int, region: str | None, is_told: bool) -> None:
    found = list(tpu.tpu_pod_region(job(on("cloud-tpu", "TPU_V2", count), region=region)))
    hint = "8 cores, or a region of europe-west4, us-central1"
    wanted = Finding(at(*COUNT), "asia-east1 has no pods of it", "32", hint)
    assert found == [wanted] * is_told
