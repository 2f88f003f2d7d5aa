"""The replicas of a job and their hosts, in the order of the worker pools.

Positions of pools: 0 primary, 1 workers, 2 parameter servers or a reduction server, 3 evaluators
(doc:training/distributed-training). A pool that is ``{}`` is skipped, and has no key in
CLUSTER_SPEC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.runner.environment import Placement

#: Port of every entry of CLUSTER_SPEC and TF_CONFIG (doc:training/distributed-training).
PORT: Final = 2222
#: Name of the primary replica.
PRIMARY: Final = "workerpool0-0"
#: Replicas of one job: each is a process with an interpreter and, mostly, a framework.
MAX_REPLICAS: Final = 16
#: What a replica takes before it holds any data: an interpreter with a framework, in bytes.
REPLICA_BYTES: Final = 256 * 1024**2

_REDUCTION_SERVER: Final = re.compile(r"vertex-ai-restricted/training/reductionserver(?::|@|$)")


@dataclass(frozen=True)
class Replica:
    """One replica: its pool, its index there, and what the pool says that it runs."""

    pool: int
    index: int
    spec: Mapping[str, Any]
    """The ``workerPoolSpec``, in the API's JSON form."""

    @property
    def name(self) -> str:
        """``workerpool0-0``, as in logs and messages."""
        return f"workerpool{self.pool}-{self.index}"

    @property
    def task(self) -> Mapping[str, Any]:
        """Its ``containerSpec`` or ``pythonPackageSpec``."""
        return self.spec.get("containerSpec") or self.spec.get("pythonPackageSpec") or {}


def replicas(spec: Mapping[str, Any]) -> list[Replica]:
    """All replicas of a job; the primary one is the first.

    Raises StartRefusedError for what this machine does not run, before anything starts.
    """
    members: list[Replica] = []
    for number, pool in enumerate(spec.get("workerPoolSpecs", [])):
        if pool:
            count = int(pool.get("replicaCount", 1))
            members += [
                Replica(number, index, pool) for index in range(min(count, MAX_REPLICAS + 1))
            ]
    total = sum(int(pool.get("replicaCount", 1)) for pool in spec["workerPoolSpecs"] if pool)
    if total > MAX_REPLICAS:
        raise _refused(
            f"this local cloud runs at most {MAX_REPLICAS} replicas of a job, and this one has "
            f"{total}. Rehearse it with a lower replicaCount: one worker more than the primary "
            "shows what many would."
        )
    for replica in members:
        if is_reduction_server(replica.task.get("imageUri", "")):
            raise _refused(
                f"{replica.name} is a reduction server: it reduces gradients that NCCL sends from "
                "GPUs, and this machine has neither its image nor such workers. Rehearse the job "
                "without this pool: what it computes is the same."
            )
    return members


def is_reduction_server(image: str) -> bool:
    """Return whether an image is Google's reduction server."""
    return bool(_REDUCTION_SERVER.search(image))


def check_memory(count: int, free_bytes: int) -> None:
    """Raise StartRefusedError if ``count`` replicas do not fit into this machine's free memory."""
    needed = count * REPLICA_BYTES
    if count > 1 and needed > free_bytes:
        raise _refused(
            f"{count} replicas take {_mib(needed)} MiB before they hold any data, and this machine "
            f"has {_mib(free_bytes)} MiB free. Rehearse the job with a lower replicaCount, or end "
            "other programs."
        )


def placements(members: Sequence[Replica], hosts: Mapping[str, str]) -> dict[str, Placement]:
    """Return the placement of each replica by its name; ``hosts`` has the ``HOST:PORT`` of each."""
    cluster: dict[str, list[str]] = {}
    for replica in members:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(hosts[replica.name])
    return {r.name: Placement(r.pool, r.index, cluster) for r in members}


def _refused(text: str) -> StartRefusedError:
    return StartRefusedError(RpcCode.FAILED_PRECONDITION, text)


def _mib(size: int) -> int:
    return size // 1024**2
