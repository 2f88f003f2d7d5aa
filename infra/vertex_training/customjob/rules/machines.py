"""Machine types, their accelerators, regions and boot disks, and TPUs, by the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import POOLS, Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import nearest

COMPUTE: Final = GUIDES + "training/configure-compute"
LOCATIONS: Final = GUIDES + "general/locations#accelerators"
#: End of support of P100, from the caution on the page above.
RETIRED: Final = {"NVIDIA_TESLA_P100": "2026-09-15"}
#: Families by the disks that they have: the page of the rule below, and types/machine_resources.py.
HYPERDISK_ONLY: Final = ("a3-ultragpu-", "a4-", "a4x-")
WITHOUT_HYPERDISK: Final = ("n1-", "e2-")


@rule("machine-type", COMPUTE)
def machine_type(job: Job) -> Iterator[Finding]:
    """The machine type is one that training jobs may use."""
    for pool in job.pools:
        name = pool.machine_type
        if name and pool.shape is None:
            near = nearest(name, machines.machine_types())
            hint = f"did you mean '{near}'?" if near else "`vt catalogue` lists what there is"
            what = machines.unavailable_reason(name) or "not a machine type of training jobs"
            yield Finding((*pool.machine_path, "machineType"), what, name, hint)


@rule("accelerator-pair", "https://github.com/prefect-archive/prefect-gcp/issues/175", "warning")
def accelerator_pair(job: Job) -> Iterator[Finding]:
    """acceleratorType and acceleratorCount are given together, or neither."""
    for pool in job.pools:
        if pool.required or pool.count < 0:
            continue
        if bool(pool.accelerator) != bool(pool.count):
            missing = "acceleratorCount" if pool.accelerator else "acceleratorType"
            what, hint = f"{missing} is missing", "give type and count, or neither"
            yield Finding(pool.machine_path, what, "", hint, missing)


@rule("accelerator-zero", COMPUTE, "note")
def accelerator_zero(job: Job) -> Iterator[Finding]:
    """acceleratorCount is left out rather than 0."""
    for pool in job.pools:
        if pool.machine.get("acceleratorCount") == 0 and not pool.accelerator:
            path = (*pool.machine_path, "acceleratorCount")
            yield Finding(path, "says the same as leaving it out", "0", "remove it")


@rule("accelerator-required", COMPUTE)
def accelerator_required(job: Job) -> Iterator[Finding]:
    """Machine types made for an accelerator name it, with its count."""
    for pool in job.pools:
        if not pool.required or pool.shape is None:
            continue
        for field in ("acceleratorType", "acceleratorCount"):
            value = pool.accelerator if field == "acceleratorType" else pool.count
            if not value:
                what = f"{field} is missing; {pool.machine_type} needs it"
                yield Finding(pool.machine_path, what, "", pool.shape.choices, field)


@rule("accelerator-machine", COMPUTE)
def accelerator_machine(job: Job) -> Iterator[Finding]:
    """The accelerator is one that the machine type can have."""
    for pool in job.pools:
        if pool.shape is None or pool.shape.topologies or not pool.accelerator:
            continue
        if pool.accelerator not in pool.shape.accelerators:
            carriers = [
                name
                for name, shape in machines.machine_types().items()
                if pool.accelerator in shape.accelerators
            ]
            hint = (
                f"it comes with {', '.join(carriers[:4])}" if carriers else "no machine type has it"
            )
            if len(carriers) > 4:
                hint += " and others"
            if pool.shape.accelerators:
                hint += f"; this machine type has {pool.shape.choices}"
            what = f"{pool.machine_type} cannot have this accelerator"
            yield Finding((*pool.machine_path, "acceleratorType"), what, pool.accelerator, hint)


@rule("accelerator-count", COMPUTE)
def accelerator_count(job: Job) -> Iterator[Finding]:
    """The accelerator count is one of those the machine type allows."""
    for pool in job.pools:
        path = (*pool.machine_path, "acceleratorCount")
        if pool.count < 0:
            hint = (pool.shape and pool.shape.choices) or "remove it"
            yield Finding(path, "must be at least 1", str(pool.count), hint)
        elif (shape := pool.shape) and not shape.tpu and pool.count:
            counts = shape.accelerators.get(pool.accelerator, ())
            if counts and pool.count not in counts:
                allowed = ", ".join(str(count) for count in counts)
                what = f"{pool.machine_type} takes {allowed} of {pool.accelerator}"
                yield Finding(path, what, str(pool.count), _other_size(pool, shape))


@rule("accelerator-retired", COMPUTE)
def accelerator_retired(job: Job) -> Iterator[Finding]:
    """The accelerator is still supported."""
    for pool in job.pools:
        end = RETIRED.get(pool.accelerator)
        if end and job.context.date.isoformat() >= end:
            path = (*pool.machine_path, "acceleratorType")
            hint = "NVIDIA_TESLA_T4 and NVIDIA_TESLA_V100 go on the same machines"
            yield Finding(path, f"its support ended on {end}", pool.accelerator, hint)


@rule("accelerator-region", LOCATIONS)
def accelerator_region(job: Job) -> Iterator[Finding]:
    """The region offers the accelerator for training."""
    for pool in job.pools:
        known = machines.accelerators().get(pool.accelerator)
        offered = known.regions if known else frozenset[str]()
        if pool.shape and pool.shape.topologies:  # TPUs that are chosen by machine type
            offered = pool.shape.regions
        if job.region and offered and job.region not in offered:
            what = f"{job.region} does not offer this accelerator for training"
            field = "acceleratorType" if pool.accelerator else "machineType"
            got = pool.accelerator or pool.machine_type
            hint = f"regions: {', '.join(sorted(offered))}"
            yield Finding((*pool.machine_path, field), what, got, hint)


@rule("machine-region", COMPUTE, "warning")
def machine_region(job: Job) -> Iterator[Finding]:
    """The region has the machine type."""
    for pool in job.pools:
        shape = pool.shape
        if shape is None or job.region is None or shape.topologies:
            continue
        lacking = job.region in shape.regions_without_shape
        if shape.regions and not shape.accelerator_required:
            lacking = job.region not in shape.regions
        if lacking:
            what = f"{job.region} was not seen to have this machine type"
            hint = f"regions: {', '.join(sorted(shape.regions - shape.regions_without_shape))}"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("several-accelerators", LOCATIONS, "warning")
def several_accelerators(job: Job) -> Iterator[Finding]:
    """Different accelerators in one job are all to be had in one zone of the region."""
    kinds = {pool.accelerator: pool for pool in reversed(job.pools) if pool.accelerator}
    if len(kinds) > 1:
        last = max(kinds.values(), key=lambda pool: pool.index)
        what = "several accelerators in one job need one zone that has them all"
        got = ", ".join(sorted(kinds))
        yield Finding((*last.machine_path, "acceleratorType"), what, got, "prefer one kind")


@rule("gpu-partition", TYPES + "machine_resources.py")
def gpu_partition(job: Job) -> Iterator[Finding]:
    """A part of a GPU is asked for with acceleratorCount 1."""
    for pool in job.pools:
        if pool.machine.get("gpuPartitionSize") and pool.count != 1:
            path = (*pool.machine_path, "gpuPartitionSize")
            hint = "acceleratorCount: 1, or no gpuPartitionSize"
            yield Finding(path, "needs acceleratorCount 1", str(pool.count), hint)


@rule("disk-type", COMPUTE)
def disk_type(job: Job) -> Iterator[Finding]:
    """The boot disk is of a type training jobs can have."""
    for pool in job.pools:
        kind = pool.spec.get("diskSpec", {}).get("bootDiskType")
        if kind is not None and kind not in machines.boot_disk_types():
            path = (*pool.path, "diskSpec", "bootDiskType")
            hint = f"one of {', '.join(machines.boot_disk_types())}"
            yield Finding(path, "not a boot disk of training jobs", kind, hint)


@rule("disk-machine", "https://docs.cloud.google.com/compute/docs/disks/hyperdisks", "warning")
def disk_machine(job: Job) -> Iterator[Finding]:
    """The machine can have the type of boot disk: the newest have Hyperdisk alone, N1 has none."""
    for pool in job.pools:
        kind = pool.spec.get("diskSpec", {}).get("bootDiskType")
        path, machine = (*pool.path, "diskSpec", "bootDiskType"), pool.machine_type
        if kind in ("pd-ssd", "pd-standard") and machine.startswith(HYPERDISK_ONLY):
            yield Finding(path, f"{machine} has Hyperdisk alone", kind, "hyperdisk-balanced")
        if kind == "hyperdisk-balanced" and machine.startswith(WITHOUT_HYPERDISK):
            yield Finding(path, f"{machine} has no Hyperdisk Balanced", kind, "pd-ssd")


@rule("disk-size", COMPUTE)
def disk_size(job: Job) -> Iterator[Finding]:
    """The boot disk has 100 to 64,000 GB."""
    sizes = machines.boot_disk_sizes()
    for pool in job.pools:
        size = pool.spec.get("diskSpec", {}).get("bootDiskSizeGb")
        if size and size not in sizes:  # 0 is protobuf's unset
            path = (*pool.path, "diskSpec", "bootDiskSizeGb")
            hint = "leave it out for 100; data to keep belongs into baseOutputDirectory"
            yield Finding(path, f"must be {sizes[0]} to {sizes[-1]:,} GB", str(size), hint)


def _other_size(pool: Pool, shape: machines.MachineType) -> str:
    """Machine types of the same family that take this count; else what ``shape`` takes."""
    fits = [
        name
        for name, other in machines.machine_types().items()
        if other.family.split("-")[0] == shape.family.split("-")[0]
        and pool.count in other.accelerators.get(pool.accelerator, ())
    ]
    return f"{pool.count} of them: {', '.join(fits[:4])}" if fits else shape.choices


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
        topology = pool.machine.get("tpuTopology")
        hint = f"one of {', '.join(pool.shape.topologies)}"
        if not topology:
            what = f"tpuTopology is missing; {pool.machine_type} needs it"
            yield Finding(pool.machine_path, what, "", hint, "tpuTopology")
        elif topology not in pool.shape.topologies:
            path = (*pool.machine_path, "tpuTopology")
            yield Finding(path, f"not a topology of {pool.machine_type}", topology, hint)


@rule("tpu-topology-unused", COMPUTE)
def tpu_topology_unused(job: Job) -> Iterator[Finding]:
    """Only TPUs that are chosen by machine type have a topology."""
    for pool in job.pools:
        topology = pool.machine.get("tpuTopology")
        if topology and pool.shape and not pool.shape.topologies:
            path = (*pool.machine_path, "tpuTopology")
            yield Finding(path, f"{pool.machine_type} has no topology", topology, "remove it")


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
