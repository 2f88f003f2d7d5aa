"""The replicas of a job, in the order of the worker pools.

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
#: Maximum number of replicas of one job: each is a process, mostly with a framework.
MAX_REPLICAS: Final = 16
#: Memory of a replica without data (an interpreter with a framework), in bytes.
REPLICA_BYTES: Final = 256 * 1024**2

_REDUCTION_SERVER: Final = re.compile(r"vertex-ai-restricted/training/reductionserver(?::|@|$)")


@dataclass(frozen=True)
class Replica:
    """One replica: its pool, its index in the pool, and the pool's specification."""

    pool: int
    index: int
    spec: Mapping[str, Any]
    """The ``workerPoolSpec``, in the API's JSON form."""

    @property
    def name(self) -> str:
        """The replica's name, such as ``workerpool0-0``."""
        return f"workerpool{self.pool}-{self.index}"

    @property
    def task(self) -> Mapping[str, Any]:
        """The replica's ``containerSpec`` or ``pythonPackageSpec``."""
        return self.spec.get("containerSpec") or self.spec.get("pythonPackageSpec") or {}


def replicas(spec: Mapping[str, Any]) -> list[Replica]:
    """Return all replicas of a job, with the primary replica first.

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
            f"the local cloud runs at most {MAX_REPLICAS} replicas of a job, and this job has "
            f"{total}. Rehearse the job with a lower replicaCount: one worker besides the primary "
            "suffices."
        )
    for replica in members:
        if is_reduction_server(replica.task.get("imageUri", "")):
            raise _refused(
                f"{replica.name} is a reduction server, which reduces gradients of GPU workers; "
                "the local cloud has no GPUs. Rehearse the job without this pool: the result is "
                "the same."
            )
    return members


def is_reduction_server(image: str) -> bool:
    """Return whether an image is Google's reduction server."""
    return bool(_REDUCTION_SERVER.search(image))


def check_memory(count: int, free_bytes: int) -> None:
    """Raise StartRefusedError if ``count`` replicas exceed this machine's free memory."""
    needed = count * REPLICA_BYTES
    if count > 1 and needed > free_bytes:
        raise _refused(
            f"{count} replicas need {_mib(needed)} MiB of memory without data, and this machine "
            f"has {_mib(free_bytes)} MiB free. Rehearse the job with a lower replicaCount, or end "
            "other programs."
        )


def placements(members: Sequence[Replica], hosts: Mapping[str, str]) -> dict[str, Placement]:
    """Return the placement of each replica by name; ``hosts`` maps names to ``HOST:PORT``."""
    cluster: dict[str, list[str]] = {}
    for replica in members:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(hosts[replica.name])
    return {r.name: Placement(r.pool, r.index, cluster) for r in members}


def _refused(text: str) -> StartRefusedError:
    return StartRefusedError(RpcCode.FAILED_PRECONDITION, text)


def _mib(size: int) -> int:
    return size // 1024**2
