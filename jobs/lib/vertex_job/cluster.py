"""Rank of this node and address of the primary node, for arguments of torchrun.

Vertex AI describes the cluster in CLUSTER_SPEC, on every replica. Pool 0 is the primary, pool 1 has
the other workers, pool 2 parameter servers or a reduction server, pool 3 evaluators: only pools 0
and 1 are nodes of the training
(https://docs.cloud.google.com/vertex-ai/docs/training/distributed-training).

RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are not documented for Vertex AI. Where
some were seen, they counted machines, not processes. This module reads none of them; torchrun sets
them for each process.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_job.errors import ClusterError

#: Worker pools whose replicas are nodes of the training, in the order of their ranks.
NODE_POOLS = ("workerpool0", "workerpool1")
_POOLS = re.compile(r"workerpool[0-3]")
#: torchrun's own default, and how many ports above it a job may get. Both are below the ports of
#: outgoing connections, so that the primary's port is free.
_PORT, _PORTS = 29500, 2000
_SHOWN = 500


@dataclass(frozen=True)
class Cluster:
    """Position of this node in the training."""

    node_rank: int
    """0 is the primary replica."""
    nodes: int
    master_address: str
    master_port: int


def read_cluster(environ: Mapping[str, str] = os.environ) -> Cluster:
    """Read the cluster from CLUSTER_SPEC; a single node without the variable.

    Raises:
        ClusterError: the description has an unknown shape, or this replica is no node.
    """
    port = master_port(environ.get("CLOUD_ML_JOB_ID", ""))
    text = environ.get("CLUSTER_SPEC", "")
    if not text:
        return Cluster(0, 1, "127.0.0.1", port)
    pools, pool, index = _parse(text)
    if pool not in NODE_POOLS:
        raise ClusterError(
            f"this replica is {pool}-{index}, which is no node of the training: "
            f"only replicas of {' and '.join(NODE_POOLS)} are. Give this pool a program of its own."
        )
    hosts = [host for name in NODE_POOLS for host in pools.get(name, [])]
    rank = index + (len(pools["workerpool0"]) if pool == NODE_POOLS[1] else 0)
    return Cluster(rank, len(hosts), hosts[0], port)


def master_port(job_id: str) -> int:
    """Return a port that is equal on all replicas of a job, and usually differs between jobs."""
    return _PORT + (zlib.crc32(job_id.encode()) % _PORTS if job_id else 0)


def _parse(text: str) -> tuple[dict[str, list[str]], str, int]:
    """Return the hosts of all pools, and this replica's pool and index."""
    try:
        spec: Any = json.loads(text)
        cluster, task = spec["cluster"], spec["task"]
        pools = {
            str(name): [_host(entry) for entry in entries] for name, entries in cluster.items()
        }
        pool, index = str(task["type"]), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unknown(f"{type(error).__name__}: {error}", text) from None
    odd = sorted(name for name in pools if not _POOLS.fullmatch(name))
    if odd:
        raise _unknown(f"the cluster has unknown pools: {', '.join(odd)}", text)
    if not pools.get("workerpool0"):
        raise _unknown("workerpool0, the primary, has no host", text)
    if not 0 <= index < len(pools.get(pool, [])):
        raise _unknown(f"the task {pool}-{index} is not in the cluster", text)
    return pools, pool, index


def _host(entry: str) -> str:
    host, colon, port = entry.rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise ValueError(f"{entry!r} is not HOST:PORT")
    return host


def _unknown(what: str, text: str) -> ClusterError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    return ClusterError(f"CLUSTER_SPEC has an unknown form: {what}. Value: {shown}")
