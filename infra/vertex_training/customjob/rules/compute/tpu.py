"""TPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import POOLS, Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, Finding, rule

COMPUTE: Final = GUIDES + "training/configure-compute"
PREBUILT: Final = GUIDES + "training/pre-built-containers"
SPOT: Final = GUIDES + "training/use-spot-vms"
#: The smallest pod of TPU v2 and v3; counts grow in steps of it.
POD: Final = 32


@rule("tpu-topology", COMPUTE)
def tpu_topology(job: Job) -> Iterator[Finding]:
    """A TPU that is chosen by machine type has one of its topologies."""
    for pool in job.pools:
        if pool.shape is None or not pool.shape.topologies:
            continue
        given = pool.machine.get("tpuTopology")
        hint = f"one of {', '.join(pool.shape.topologies)}"
        if not given:
            what = f"tpuTopology is missing; {pool.machine_type} needs it"
            yield Finding(pool.machine_path, what, "", hint, "tpuTopology")
        elif given not in pool.shape.topologies:
            path = (*pool.machine_path, "tpuTopology")
            yield Finding(path, f"not a topology of {pool.machine_type}", given, hint)


@rule("tpu-topology-unused", COMPUTE)
def tpu_topology_unused(job: Job) -> Iterator[Finding]:
    """Only TPUs that are chosen by machine type have a topology."""
    for pool in job.pools:
        given = pool.machine.get("tpuTopology")
        if given and pool.shape and not pool.shape.topologies:
            path = (*pool.machine_path, "tpuTopology")
            yield Finding(path, f"{pool.machine_type} has no topology", given, "remove it")


@rule("tpu-accelerator", COMPUTE)
def tpu_accelerator(job: Job) -> Iterator[Finding]:
    """A TPU that is chosen by machine type has no acceleratorType."""
    for pool in job.pools:
        if pool.shape and pool.shape.topologies and pool.accelerator:
            path = (*pool.machine_path, "acceleratorType")
            hint = "remove acceleratorType and acceleratorCount; tpuTopology says how many"
            yield Finding(path, f"{pool.machine_type} takes none", pool.accelerator, hint)


@rule("tpu-count", COMPUTE)
def tpu_count(job: Job) -> Iterator[Finding]:
    """A cloud-tpu has 8 cores, or a pod of 32 and multiples."""
    for pool in job.pools:
        allowed = pool.shape.accelerators.get(pool.accelerator) if pool.shape else None
        if pool.machine_type != "cloud-tpu" or allowed is None or pool.count <= 0:
            continue
        if pool.count not in allowed and pool.count % POD:
            path = (*pool.machine_path, "acceleratorCount")
            hint = "8 is one machine, 32 the smallest pod"
            yield Finding(path, "must be 8, or a multiple of 32", str(pool.count), hint)


@rule("tpu-pod-region", GUIDES + "general/locations#accelerators")
def tpu_pod_region(job: Job) -> Iterator[Finding]:
    """The region has pods of this TPU."""
    for pool in job.pools:
        regions = pool.shape.pod_regions.get(pool.accelerator) if pool.shape else None
        # Another rule reports a region without such TPUs.
        if job.region and regions and pool.count >= POD and job.region not in regions:
            path = (*pool.machine_path, "acceleratorCount")
            hint = f"8 cores, or a region of {', '.join(sorted(regions))}"
            yield Finding(path, f"{job.region} has no pods of it", str(pool.count), hint)


@rule("tpu-alone", COMPUTE)
def tpu_alone(job: Job) -> Iterator[Finding]:
    """A TPU job has one worker pool with one replica."""
    tpus = [pool for pool in job.pools if pool.shape and pool.shape.tpu]
    if not tpus:
        return
    if len(job.pools) > 1:
        second = job.pools[1]
        what, hint = "a TPU job has one worker pool only", "a larger topology has more chips"
        yield Finding((*POOLS, second.index), what, "", hint)
    for pool in tpus:
        if pool.index > 0 and pool.replicas > 1:
            path = (*pool.path, "replicaCount")
            hint = "a larger topology has more chips"
            yield Finding(path, "a TPU pool has one replica", str(pool.replicas), hint)


@rule("tpu-pod-spot", SPOT)
def tpu_pod_spot(job: Job) -> Iterator[Finding]:
    """TPU pods do not run on Spot capacity."""
    for pool in job.pools:
        if job.strategy == "SPOT" and _is_pod(pool):
            path = ("jobSpec", "scheduling", "strategy")
            yield Finding(path, "TPU pods cannot be SPOT", "SPOT", "use STANDARD, or a smaller TPU")


@rule("tpu-prebuilt-image", PREBUILT)
def tpu_prebuilt_image(job: Job) -> Iterator[Finding]:
    """There is no prebuilt image for TPU v5e: it needs an image of one's own."""
    for pool in job.pools:
        v5e = pool.machine_type.startswith("ct5lp-")
        if v5e and pool.task_name == "pythonPackageSpec":
            what, hint = "no prebuilt image runs on TPU v5e", "containerSpec, with an own image"
            yield Finding(pool.task_path, what, pool.image, hint)


def _is_pod(pool: Pool) -> bool:
    if pool.machine_type == "cloud-tpu":
        return pool.count >= POD
    topology = pool.machine.get("tpuTopology")
    if pool.shape is None or not pool.shape.chips or topology not in pool.shape.topologies:
        return False
    return math.prod(int(side) for side in topology.split("x")) > pool.shape.chips
