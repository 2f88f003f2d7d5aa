"""Reduction servers: machines without GPUs that add up the gradients of the workers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, Finding, rule

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
