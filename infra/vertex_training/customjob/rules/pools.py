"""Worker pools: order, replicas, required fields, and reduction servers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import POOLS, SPEC, Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Mend

DISTRIBUTED: Final = GUIDES + "training/distributed-training"
FLAG: Final = re.compile(r"--[A-Za-z][\w-]*")


@rule("first-pool", TYPES + "custom_job.py")
def first_pool(job: Job) -> Iterator[Finding]:
    """The first worker pool is there and not empty."""
    specs = job.spec.get("workerPoolSpecs")
    if not specs:
        hint = "a job has at least one pool"
        yield Finding(SPEC, "workerPoolSpecs is missing", "", hint, missing="workerPoolSpecs")
    elif not specs[0]:
        yield Finding((*POOLS, 0), "the first worker pool is empty", "", "skip only later pools")


@rule("pool-count", DISTRIBUTED)
def pool_count(job: Job) -> Iterator[Finding]:
    """At most four worker pools: primary, workers, parameter or reduction servers, evaluators."""
    count = len(job.spec.get("workerPoolSpecs", []))
    if count > 4:
        hint = "more machines of one kind: raise a pool's replicaCount"
        yield Finding((*POOLS, 4), "a job has at most 4 worker pools", str(count), hint)


@rule("pool-machine", TYPES + "custom_job.py")
def pool_machine(job: Job) -> Iterator[Finding]:
    """Each worker pool names a machine type."""
    for pool in job.pools:
        if not pool.machine_type:
            machine = "machineSpec" in pool.spec
            path = pool.machine_path if machine else pool.path
            what = f"{'' if machine else 'machineSpec.'}machineType is missing"
            missing = "machineType" if machine else "machineSpec"
            yield Finding(path, what, "", "for example n1-standard-4", missing)


@rule("pool-task", TYPES + "custom_job.py")
def pool_task(job: Job) -> Iterator[Finding]:
    """Each worker pool has something to run: a container, or a package in a prebuilt image."""
    for pool in job.pools:
        if not pool.task_name:
            hint = "an image of your own, or a package in a prebuilt image"
            what = "containerSpec or pythonPackageSpec is missing"
            yield Finding(pool.path, what, "", hint, missing="containerSpec")


@rule("replica-count", TYPES + "custom_job.py")
def replica_count(job: Job) -> Iterator[Finding]:
    """A worker pool has at least one replica."""
    for pool in job.pools:
        if pool.replicas < 1:
            hint = "leave a pool out with {}"
            yield Finding(
                (*pool.path, "replicaCount"), "must be at least 1", str(pool.replicas), hint
            )


@rule("chief-replicas", DISTRIBUTED)
def chief_replicas(job: Job) -> Iterator[Finding]:
    """The first worker pool is the primary replica alone; the others go into the second pool."""
    for pool in job.pools:
        if pool.index == 0 and pool.replicas > 1:
            hint = f"replicaCount 1 here, and {pool.replicas - 1} in a second pool"
            what, got = "the first pool has one replica", str(pool.replicas)
            # Of several pools, nobody but their author knows which one the others belong to.
            mend = Mend("split", guessed=True) if len(job.pools) == 1 else None
            yield Finding((*pool.path, "replicaCount"), what, got, hint, mend=mend)


@rule("pools-inherit-nothing", DISTRIBUTED, "warning")
def pools_inherit_nothing(job: Job) -> Iterator[Finding]:
    """A worker is told what the first pool is told: nothing is inherited between pools."""
    if [pool.index for pool in job.pools[:2]] != [0, 1]:
        return
    chief, worker = job.pools[:2]
    if not chief.image or chief.image != worker.image:
        return
    lacks = [
        *(
            name
            for name in ("command", "args")
            if chief.task.get(name) and not worker.task.get(name)
        ),
        *(sorted(_flags(chief) - _flags(worker)) if worker.task.get("args") else ()),
        *sorted(_names(chief) - _names(worker)),
    ]
    if lacks:
        what = "the first pool of the same image has more: nothing is inherited between pools"
        hint = "repeat them here, if the code needs them"
        yield Finding(worker.task_path, what, ", ".join(lacks), hint)


def _flags(pool: Pool) -> set[str]:
    texts = [*pool.task.get("command", []), *pool.task.get("args", [])]
    return {match.group() for text in texts if (match := FLAG.match(text))}


def _names(pool: Pool) -> set[str]:
    return {name for _, name, _ in pool.variables() if name}


PAGE: Final = GUIDES + "training/distributed-training"
IMAGE: Final = re.compile(
    r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai-restricted/training/reductionserver:latest\Z"
)


def _servers(job: Job) -> list[Pool]:
    return [pool for pool in job.pools if pool.is_reduction_server]


@rule("reduction-image", PAGE)
def reduction_image(job: Job) -> Iterator[Finding]:
    """A reduction server's image is Google's, with the tag :latest."""
    for pool in _servers(job):
        if not IMAGE.match(pool.image):
            hint = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
            path = (*pool.task_path, pool.image_field)
            yield Finding(path, "not the reduction server's image", pool.image, hint)


@rule("reduction-place", PAGE)
def reduction_place(job: Job) -> Iterator[Finding]:
    """Reduction servers are the third worker pool."""
    for pool in _servers(job):
        if pool.index != 2:
            hint = "primary, workers, reduction servers; leave a pool out with {}"
            what = "reduction servers belong into the third pool, workerPoolSpecs[2]"
            yield Finding(pool.path, what, "", hint)


@rule("reduction-gpu", PAGE)
def reduction_gpu(job: Job) -> Iterator[Finding]:
    """Reduction servers have no GPUs."""
    for pool in _servers(job):
        if not pool.gpu:
            continue
        field, got, hint = "machineType", pool.machine_type, "n1-highcpu-16"
        if pool.accelerator and not pool.required:
            field, got = "acceleratorType", pool.accelerator
            hint = "remove it, and acceleratorCount"
        yield Finding((*pool.machine_path, field), "a reduction server has no GPUs", got, hint)


@rule("reduction-workers", PAGE)
def reduction_workers(job: Job) -> Iterator[Finding]:
    """Reduction servers serve workers that have GPUs."""
    workers = [pool for pool in job.pools if pool.index < 2 and not pool.is_reduction_server]
    for server in _servers(job):
        if not any(pool.gpu for pool in workers):
            what = "no worker has a GPU: there is nothing to reduce"
            yield Finding(server.path, what, "", "remove this pool, or give the workers GPUs")


@rule("reduction-bandwidth", PAGE, "warning")
def reduction_bandwidth(job: Job) -> Iterator[Finding]:
    """Reduction servers together have at least the bandwidth of the workers."""
    workers = [pool for pool in job.pools if pool.index < 2 and not pool.is_reduction_server]
    for server in _servers(job):
        each = machines.bandwidth(server.machine_type)
        needs = [machines.bandwidth(pool.machine_type) for pool in workers]
        if each is None or None in needs or not any(pool.gpu for pool in workers):
            continue  # no source states a bandwidth
        total = sum(gbps * pool.replicas for gbps, pool in zip(needs, workers, strict=True) if gbps)
        if each * server.replicas < total:
            what = f"{each * server.replicas} Gbps against {total} Gbps of the workers"
            hint = f"at least {math.ceil(total / each)} of {server.machine_type}"
            yield Finding((*server.path, "replicaCount"), what, str(server.replicas), hint)
