"""Rules about worker pools: order, replicas, required fields and reduction servers."""

import math
import re
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import POOLS, SPEC, Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Mend

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
