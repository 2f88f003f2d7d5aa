"""Rules about worker pools and their machines.

They check order, replicas and required fields of pools, and reduction servers; and, from the
catalogue, machine types, accelerators, regions, boot disks and TPUs.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import POOLS, SPEC, Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Mend, nearest

DISTRIBUTED: Final = GUIDES + "training/distributed-training"
FLAG: Final = re.compile(r"--[A-Za-z][\w-]*")


@rule("first-pool", TYPES + "custom_job.py")
def first_pool(job: Job) -> Findings:
    """Check that a job has a first worker pool that is not empty."""
    specs = job.spec.get("workerPoolSpecs")
    if not specs:
        hint = "add workerPoolSpecs with at least one pool"
        yield Finding(SPEC, "workerPoolSpecs is missing", "", hint, missing="workerPoolSpecs")
    elif not specs[0]:
        hint = "describe the first pool; only later pools can be empty"
        yield Finding((*POOLS, 0), "the first worker pool is empty", "", hint)


@rule("pool-count", DISTRIBUTED)
def pool_count(job: Job) -> Findings:
    """Check that a job has at most four worker pools: primary, workers, servers and evaluators."""
    count = len(job.spec.get("workerPoolSpecs", []))
    if count > 4:
        hint = "for more equal machines, raise a pool's replicaCount"
        yield Finding((*POOLS, 4), "a job has at most 4 worker pools", str(count), hint)


@rule("pool-machine", TYPES + "custom_job.py", of=pools_of)
def pool_machine(pool: Pool) -> Findings:
    """Check that each worker pool has a machineType."""
    if not pool.machine_type:
        machine = "machineSpec" in pool.spec
        path = pool.machine_path if machine else pool.path
        what = f"{'' if machine else 'machineSpec.'}machineType is missing"
        missing = "machineType" if machine else "machineSpec"
        yield Finding(path, what, "", "write a type such as n1-standard-4", missing)


@rule("pool-task", TYPES + "custom_job.py", of=pools_of)
def pool_task(pool: Pool) -> Findings:
    """Check that each worker pool has a containerSpec or a pythonPackageSpec."""
    if not pool.task_name:
        hint = "add containerSpec (your own image) or pythonPackageSpec (a prebuilt image)"
        what = "the pool has neither containerSpec nor pythonPackageSpec"
        yield Finding(pool.path, what, "", hint, missing="containerSpec")


@rule("replica-count", TYPES + "custom_job.py", of=pools_of)
def replica_count(pool: Pool) -> Findings:
    """Check that a worker pool has at least one replica."""
    if pool.replicas < 1:
        hint = "write {} for an unused pool"
        what = "replicaCount must be at least 1"
        yield Finding((*pool.path, "replicaCount"), what, str(pool.replicas), hint)


@rule("chief-replicas", DISTRIBUTED, of=pools_of)
def chief_replicas(pool: Pool) -> Findings:
    """Check that the first worker pool has one replica; further workers are in the second pool."""
    if pool.index == 0 and pool.replicas > 1:
        hint = f"write replicaCount 1 here, and {pool.replicas - 1} in a second pool"
        what, got = "the first pool must have one replica", str(pool.replicas)
        # If the job has several pools, the right pool for the other replicas is unknown.
        mend = Mend("split", guessed=True) if len(pool.job.pools) == 1 else None
        yield Finding((*pool.path, "replicaCount"), what, got, hint, mend=mend)


@rule("pools-inherit-nothing", DISTRIBUTED, "warning")
def pools_inherit_nothing(job: Job) -> Findings:
    """Check that the worker pool repeats the first pool's command, args and env."""
    if [pool.index for pool in job.pools[:2]] != [0, 1]:
        return
    chief, worker = job.pools[:2]
    if not chief.image or chief.image != worker.image:
        return
    fields = ("command", "args")
    lacks = [name for name in fields if chief.task.get(name) and not worker.task.get(name)]
    if worker.task.get("args"):
        lacks += sorted(_flags(chief) - _flags(worker))
    lacks += sorted(chief.variable_names - worker.variable_names)
    if lacks:
        what = "the first pool sets command, args or env that this pool lacks and does not inherit"
        hint = "repeat these settings in this pool if the code needs the settings"
        yield Finding(worker.task_path, what, ", ".join(lacks), hint)


def _flags(pool: Pool) -> set[str]:
    return {match.group() for _, text in pool.words() if (match := FLAG.match(text))}


IMAGE: Final = re.compile(
    r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai-restricted/training/reductionserver:latest\Z"
)


def _servers(job: Job) -> list[Pool]:
    return [pool for pool in job.pools if pool.is_reduction_server]


@rule("reduction-image", DISTRIBUTED, of=_servers)
def reduction_image(pool: Pool) -> Findings:
    """Check that a reduction server runs Google's image, with the tag :latest."""
    if not IMAGE.match(pool.image):
        hint = "write us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
        path = (*pool.task_path, pool.image_field)
        what = "a reduction server must run Google's reduction server image"
        yield Finding(path, what, pool.image, hint)


@rule("reduction-place", DISTRIBUTED, of=_servers)
def reduction_place(pool: Pool) -> Findings:
    """Check that reduction servers are in the third worker pool."""
    if pool.index != 2:
        hint = "move the pool to workerPoolSpecs[2]; write {} for an unused second pool"
        what = "reduction servers must be in the third pool"
        yield Finding(pool.path, what, "", hint)


@rule("reduction-gpu", DISTRIBUTED, of=_servers)
def reduction_gpu(pool: Pool) -> Findings:
    """Check that reduction servers have no GPUs."""
    if not pool.gpu:
        return
    field, got, hint = "machineType", pool.machine_type, "write n1-highcpu-16, for example"
    if pool.accelerator and not pool.required:
        field, got = "acceleratorType", pool.accelerator
        hint = "remove acceleratorType and acceleratorCount"
    what = "a reduction server must not have GPUs"
    yield Finding((*pool.machine_path, field), what, got, hint)


@rule("reduction-workers", DISTRIBUTED)
def reduction_workers(job: Job) -> Findings:
    """Check that a job with reduction servers has workers with GPUs."""
    workers = [pool for pool in job.pools if pool.index < 2 and not pool.is_reduction_server]
    for server in _servers(job):
        if not any(pool.gpu for pool in workers):
            what = "reduction servers have no effect: no worker has a GPU"
            hint = "remove this pool, or add GPUs to the worker pools"
            yield Finding(server.path, what, "", hint)


@rule("reduction-bandwidth", DISTRIBUTED, "warning")
def reduction_bandwidth(job: Job) -> Findings:
    """Check that reduction servers have at least the total bandwidth of the workers."""
    workers = [pool for pool in job.pools if pool.index < 2 and not pool.is_reduction_server]
    for server in _servers(job):
        server_gbps = machines.bandwidth(server.machine_type)
        needs = [machines.bandwidth(pool.machine_type) for pool in workers]
        if server_gbps is None or None in needs or not any(pool.gpu for pool in workers):
            continue  # no source states a bandwidth
        total = sum(gbps * pool.replicas for gbps, pool in zip(needs, workers, strict=True) if gbps)
        if server_gbps * server.replicas < total:
            available = server_gbps * server.replicas
            what = f"reduction servers have {available} Gbps, and workers have {total} Gbps"
            hint = f"use at least {math.ceil(total / server_gbps)} {server.machine_type} replicas"
            yield Finding((*server.path, "replicaCount"), what, str(server.replicas), hint)


COMPUTE: Final = GUIDES + "training/configure-compute"
LOCATIONS: Final = GUIDES + "general/locations#accelerators"
HYPERDISKS: Final = "https://docs.cloud.google.com/compute/docs/disks/hyperdisks"
PREFECT: Final = "https://github.com/prefect-archive/prefect-gcp/issues/175"
#: Accelerator -> end of its support, from the caution on the page above.
RETIRED: Final = {"NVIDIA_TESLA_P100": "2026-09-15"}
#: Prefixes of machine types by supported disks: Google's page on Hyperdisk; machine_resources.py.
HYPERDISK_ONLY: Final = ("a3-ultragpu-", "a4-", "a4x-")
WITHOUT_HYPERDISK: Final = ("n1-", "e2-")


@rule("machine-type", COMPUTE, of=pools_of)
def machine_type(pool: Pool) -> Findings:
    """Check that the machine type is available to training jobs."""
    name = pool.machine_type
    if name and pool.shape is None:
        near = nearest(name, machines.machine_types())
        hint = f"did you mean '{near}'?" if near else "`vt catalogue` lists machine types"
        what = machines.unavailable_reason(name) or "training jobs do not support this machine type"
        yield Finding((*pool.machine_path, "machineType"), what, name, hint)


@rule("accelerator-pair", PREFECT, "warning", of=pools_of)
def accelerator_pair(pool: Pool) -> Findings:
    """Check that acceleratorType and acceleratorCount are both present or both absent."""
    if not pool.required and pool.count >= 0 and bool(pool.accelerator) != bool(pool.count):
        missing = "acceleratorCount" if pool.accelerator else "acceleratorType"
        hint = "write both acceleratorType and acceleratorCount, or remove both fields"
        yield Finding(pool.machine_path, f"{missing} is missing", "", hint, missing)


@rule("accelerator-zero", COMPUTE, "note", of=pools_of)
def accelerator_zero(pool: Pool) -> Findings:
    """Check that acceleratorCount is omitted instead of set to 0."""
    if pool.machine.get("acceleratorCount") == 0 and not pool.accelerator:
        path = (*pool.machine_path, "acceleratorCount")
        yield Finding(path, "acceleratorCount 0 has no effect", "0", "remove acceleratorCount")


@rule("accelerator-required", COMPUTE, of=pools_of)
def accelerator_required(pool: Pool) -> Findings:
    """Check that a pool on a machine type with accelerators has their type and count."""
    if not pool.required or pool.shape is None:
        return
    for field in ("acceleratorType", "acceleratorCount"):
        value = pool.accelerator if field == "acceleratorType" else pool.count
        if not value:
            what = f"{field} is missing, and {pool.machine_type} requires this field"
            hint = f"write {pool.shape.choices}"
            yield Finding(pool.machine_path, what, "", hint, field)


@rule("accelerator-machine", COMPUTE, of=pools_of)
def accelerator_machine(pool: Pool) -> Findings:
    """Check that the machine type supports the accelerator."""
    if pool.shape is None or pool.shape.topologies or not pool.accelerator:
        return
    if pool.accelerator not in pool.shape.accelerators:
        types = machines.machine_types().items()
        carriers = [name for name, shape in types if pool.accelerator in shape.accelerators]
        hint = "no machine type supports this accelerator"
        if carriers:
            hint = f"machine types with this accelerator: {', '.join(carriers[:4])}"
        if len(carriers) > 4:
            hint += " and others"
        if pool.shape.accelerators:
            hint += f"; {pool.machine_type} supports {pool.shape.choices}"
        what = f"{pool.machine_type} does not support this accelerator"
        yield Finding((*pool.machine_path, "acceleratorType"), what, pool.accelerator, hint)


@rule("accelerator-count", COMPUTE, of=pools_of)
def accelerator_count(pool: Pool) -> Findings:
    """Check that the machine type supports the accelerator count."""
    path = (*pool.machine_path, "acceleratorCount")
    if pool.count < 0:
        choices = pool.shape and pool.shape.choices
        hint = f"write {choices}" if choices else "remove acceleratorCount"
        yield Finding(path, "acceleratorCount must be at least 1", str(pool.count), hint)
    elif (shape := pool.shape) and not shape.tpu and pool.count:
        counts = shape.accelerators.get(pool.accelerator, ())
        if counts and pool.count not in counts:
            allowed = ", ".join(str(count) for count in counts)
            what = f"{pool.machine_type} supports {pool.accelerator} with count {allowed}"
            yield Finding(path, what, str(pool.count), _other_size(pool, shape))


@rule("accelerator-retired", COMPUTE, of=pools_of)
def accelerator_retired(pool: Pool) -> Findings:
    """Check that the accelerator is still supported."""
    end = RETIRED.get(pool.accelerator)
    if end and pool.job.context.date.isoformat() >= end:
        path = (*pool.machine_path, "acceleratorType")
        hint = "use NVIDIA_TESLA_T4 or NVIDIA_TESLA_V100 on the same machine type"
        what = f"support of this accelerator ended on {end}"
        yield Finding(path, what, pool.accelerator, hint)


@rule("accelerator-region", LOCATIONS, of=pools_of)
def accelerator_region(pool: Pool) -> Findings:
    """Check that the region offers the accelerator for training."""
    known = machines.accelerators().get(pool.accelerator)
    offered = known.regions if known else frozenset[str]()
    if pool.shape and pool.shape.topologies:  # TPUs that are chosen by machine type
        offered = pool.shape.regions
    if pool.job.region and offered and pool.job.region not in offered:
        what = f"{pool.job.region} does not offer this accelerator for training"
        field = "acceleratorType" if pool.accelerator else "machineType"
        got = pool.accelerator or pool.machine_type
        hint = f"regions with this accelerator: {', '.join(sorted(offered))}"
        yield Finding((*pool.machine_path, field), what, got, hint)


@rule("machine-region", COMPUTE, "warning", of=pools_of)
def machine_region(pool: Pool) -> Findings:
    """Check that the region offers the machine type."""
    shape = pool.shape
    if shape is None or pool.job.region is None or shape.topologies:
        return
    lacking = pool.job.region in shape.regions_without_shape
    if shape.regions and not shape.accelerator_required:
        lacking = pool.job.region not in shape.regions
    if lacking:
        what = f"{pool.job.region} does not seem to offer this machine type"
        known = ", ".join(sorted(shape.regions - shape.regions_without_shape))
        hint = f"regions with this machine type: {known}"
        yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("several-accelerators", LOCATIONS, "warning")
def several_accelerators(job: Job) -> Findings:
    """Check that a job has one kind of accelerator: all its machines are in one zone."""
    kinds = {pool.accelerator: pool for pool in reversed(job.pools) if pool.accelerator}
    if len(kinds) > 1:
        last = max(kinds.values(), key=lambda pool: pool.index)
        what = "a job with several accelerator types needs a zone that offers all of them"
        got = ", ".join(sorted(kinds))
        hint = "use one accelerator type"
        yield Finding((*last.machine_path, "acceleratorType"), what, got, hint)


@rule("gpu-partition", TYPES + "machine_resources.py", of=pools_of)
def gpu_partition(pool: Pool) -> Findings:
    """Check that a pool with a gpuPartitionSize has acceleratorCount 1."""
    if pool.machine.get("gpuPartitionSize") and pool.count != 1:
        path = (*pool.machine_path, "gpuPartitionSize")
        hint = "write acceleratorCount: 1, or remove gpuPartitionSize"
        yield Finding(path, "gpuPartitionSize requires acceleratorCount 1", str(pool.count), hint)


@rule("disk-type", COMPUTE, of=pools_of)
def disk_type(pool: Pool) -> Findings:
    """Check that training jobs support the boot disk type."""
    kind = pool.spec.get("diskSpec", {}).get("bootDiskType")
    if kind is not None and kind not in machines.boot_disk_types():
        path = (*pool.path, "diskSpec", "bootDiskType")
        hint = f"write one of {', '.join(machines.boot_disk_types())}"
        yield Finding(path, "training jobs do not support this boot disk type", kind, hint)


@rule("disk-machine", HYPERDISKS, "warning", of=pools_of)
def disk_machine(pool: Pool) -> Findings:
    """Check that the machine type supports the boot disk type, such as Hyperdisk."""
    kind = pool.spec.get("diskSpec", {}).get("bootDiskType")
    path, machine = (*pool.path, "diskSpec", "bootDiskType"), pool.machine_type
    if kind in ("pd-ssd", "pd-standard") and machine.startswith(HYPERDISK_ONLY):
        what = f"{machine} supports only Hyperdisk"
        yield Finding(path, what, kind, "write hyperdisk-balanced")
    if kind == "hyperdisk-balanced" and machine.startswith(WITHOUT_HYPERDISK):
        what = f"{machine} does not support Hyperdisk Balanced"
        yield Finding(path, what, kind, "write pd-ssd")


@rule("disk-size", COMPUTE)
def disk_size(job: Job) -> Findings:
    """Check that the boot disk has 100 to 64,000 GB."""
    sizes = machines.boot_disk_sizes()
    for pool in job.pools:
        size = pool.spec.get("diskSpec", {}).get("bootDiskSizeGb")
        if size and size not in sizes:  # 0 is protobuf's unset
            path = (*pool.path, "diskSpec", "bootDiskSizeGb")
            hint = "remove bootDiskSizeGb to get 100 GB, and write results to baseOutputDirectory"
            what = f"the boot disk size must be {sizes[0]} to {sizes[-1]:,} GB"
            yield Finding(path, what, str(size), hint)


def _other_size(pool: Pool, shape: machines.MachineType) -> str:
    """Return a hint: the family's machine types with this count, else the counts of ``shape``."""
    fits = [
        name
        for name, other in machines.machine_types().items()
        if other.family.split("-")[0] == shape.family.split("-")[0]
        and pool.count in other.accelerators.get(pool.accelerator, ())
    ]
    sizes = f"for {pool.count}, use {', '.join(fits[:4])}"
    return sizes if fits else f"write {shape.choices}"


PREBUILT: Final = GUIDES + "training/pre-built-containers"
SPOT: Final = GUIDES + "training/use-spot-vms"
#: Cores of the smallest pod of TPU v2 and v3. Larger pods have a multiple of this number.
POD: Final = 32


@rule("tpu-topology", COMPUTE, of=pools_of)
def tpu_topology(pool: Pool) -> Findings:
    """Check that a TPU machine type has one of its topologies."""
    if pool.shape is None or not pool.shape.topologies:
        return
    topology = pool.machine.get("tpuTopology")
    hint = f"write one of {', '.join(pool.shape.topologies)}"
    if not topology:
        what = f"tpuTopology is missing, and {pool.machine_type} requires this field"
        yield Finding(pool.machine_path, what, "", hint, "tpuTopology")
    elif topology not in pool.shape.topologies:
        path = (*pool.machine_path, "tpuTopology")
        what = f"{pool.machine_type} does not support this topology"
        yield Finding(path, what, topology, hint)


@rule("tpu-topology-unused", COMPUTE, of=pools_of)
def tpu_topology_unused(pool: Pool) -> Findings:
    """Check that only TPU machine types have a tpuTopology."""
    topology = pool.machine.get("tpuTopology")
    if topology and pool.shape and not pool.shape.topologies:
        path = (*pool.machine_path, "tpuTopology")
        what = f"{pool.machine_type} has no TPU topology"
        yield Finding(path, what, topology, "remove tpuTopology")


@rule("tpu-accelerator", COMPUTE, of=pools_of)
def tpu_accelerator(pool: Pool) -> Findings:
    """Check that a pool on a TPU machine type has no acceleratorType."""
    if pool.shape and pool.shape.topologies and pool.accelerator:
        path = (*pool.machine_path, "acceleratorType")
        hint = "remove acceleratorType and acceleratorCount; tpuTopology sets the number of chips"
        what = f"{pool.machine_type} does not use acceleratorType"
        yield Finding(path, what, pool.accelerator, hint)


@rule("tpu-count", COMPUTE, of=pools_of)
def tpu_count(pool: Pool) -> Findings:
    """Check that a cloud-tpu machine has 8 cores, and a pod a multiple of 32."""
    allowed = pool.shape.accelerators.get(pool.accelerator) if pool.shape else None
    if pool.machine_type != "cloud-tpu" or allowed is None or pool.count <= 0:
        return
    if pool.count not in allowed and pool.count % POD:
        path = (*pool.machine_path, "acceleratorCount")
        hint = "write 8 for one machine, or 32 for the smallest pod"
        what = "the number of TPU cores must be 8 or a multiple of 32"
        yield Finding(path, what, str(pool.count), hint)


@rule("tpu-pod-region", GUIDES + "general/locations#accelerators", of=pools_of)
def tpu_pod_region(pool: Pool) -> Findings:
    """Check that the region offers pods of the TPU."""
    regions = pool.shape.pod_regions.get(pool.accelerator) if pool.shape else None
    # The rule accelerator-region reports a region without such TPUs.
    if pool.job.region and regions and pool.count >= POD and pool.job.region not in regions:
        path = (*pool.machine_path, "acceleratorCount")
        hint = f"use 8 cores, or one of the regions {', '.join(sorted(regions))}"
        what = f"{pool.job.region} offers no pods of {pool.accelerator}"
        yield Finding(path, what, str(pool.count), hint)


@rule("gpu-memory", "docs/jobs.md#gpu-memory", "warning")
def gpu_memory(job: Job) -> Findings:
    """Check that the predicted peak memory of the stack file's ``model`` fits into the GPUs."""
    for pool, comparison, too_large in memory_comparisons(job.pools, job.context.model):
        if too_large:
            path = (*pool.machine_path, "acceleratorType")
            hint = (
                "use gradientCheckpointing, a smaller microBatch, a higher zeroStage or another GPU"
            )
            yield Finding(path, comparison, "", hint)


def memory_comparisons(
    pools: Sequence[Pool], model: Mapping[str, Any]
) -> Iterator[tuple[Pool, str, bool]]:
    """Yield pools with GPUs, their comparison with ``model``, and whether ``model`` may not fit."""
    with_gpus = [pool for pool in pools if pool.index < 2 and pool.gpu]
    # int: a request in a plan has numbers as text.
    gpus = sum(int(pool.count) * int(pool.replicas) for pool in with_gpus)
    for pool in with_gpus if model and gpus else ():
        accelerator = machines.accelerators().get(pool.accelerator)
        if accelerator and accelerator.memory_gb:
            # `vt check` of other jobs starts faster without Pydantic.
            from vertex_training.settings.limits import TrainedModel

            trained, memory = TrainedModel.model_validate(model), accelerator.memory_gb
            yield pool, *trained.comparison(gpus, accelerator.name, memory)


@rule("tpu-alone", COMPUTE)
def tpu_alone(job: Job) -> Findings:
    """Check that a TPU job has one worker pool with one replica."""
    tpus = [pool for pool in job.pools if pool.shape and pool.shape.tpu]
    if not tpus:
        return
    if len(job.pools) > 1:
        second = job.pools[1]
        what = "a TPU job can have only one worker pool"
        hint = "remove the pool; for more chips, use a larger topology"
        yield Finding((*POOLS, second.index), what, "", hint)
    for pool in tpus:
        if pool.index > 0 and pool.replicas > 1:
            path = (*pool.path, "replicaCount")
            hint = "write 1; for more chips, use a larger topology"
            yield Finding(path, "a TPU pool can have only one replica", str(pool.replicas), hint)


@rule("tpu-pod-spot", SPOT, of=pools_of)
def tpu_pod_spot(pool: Pool) -> Findings:
    """Check that a job on TPU pods does not use SPOT."""
    topology, shape = pool.machine.get("tpuTopology"), pool.shape
    is_pod = pool.machine_type == "cloud-tpu" and pool.count >= POD
    if shape and shape.chips and topology in shape.topologies:
        is_pod = math.prod(int(side) for side in topology.split("x")) > shape.chips
    if pool.job.strategy == "SPOT" and is_pod:
        path = ("jobSpec", "scheduling", "strategy")
        hint = "use STANDARD, or a smaller TPU"
        yield Finding(path, "a job on TPU pods cannot use SPOT", "SPOT", hint)


@rule("tpu-prebuilt-image", PREBUILT, of=pools_of)
def tpu_prebuilt_image(pool: Pool) -> Findings:
    """Check that a job on TPU v5e uses a containerSpec: no prebuilt image supports TPU v5e."""
    if pool.machine_type.startswith("ct5lp-") and pool.task_name == "pythonPackageSpec":
        what = "no prebuilt image supports TPU v5e"
        hint = "use containerSpec with your own image"
        yield Finding(pool.task_path, what, pool.image, hint)
