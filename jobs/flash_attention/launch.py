"""Start torchrun on this node: ``launch.py --gpus=8 train.py [ARGS]``.

Vertex AI describes the cluster and the replica in CLUSTER_SPEC. Node 0 is the primary
(workerpool0), node i + 1 is replica i of workerpool1. Reduction servers and evaluators are not
nodes. torchrun sets RANK, LOCAL_RANK and WORLD_SIZE for every process; Vertex AI does not.

zero2.json turns ``reduce_scatter`` off, so that gradients are all-reduced: reduction servers
accelerate only that.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

PORT: Final = 29500
#: Worker pools whose replicas are nodes.
NODES: Final = ("workerpool0", "workerpool1")


def torchrun(cluster_spec: str, gpus: int, script: list[str]) -> list[str]:
    """The command line for the node that ``cluster_spec`` describes; one node if it is empty."""
    if not cluster_spec:
        return ["torchrun", "--standalone", f"--nproc-per-node={gpus}", *script]
    spec = json.loads(cluster_spec)
    cluster, task = spec["cluster"], spec["task"]
    if task["type"] not in NODES:
        raise SystemExit(f"{task['type']} is no node of the training; it needs another image")
    hosts = [host for pool in NODES for host in cluster.get(pool, [])]
    rank = int(task["index"]) + (len(cluster["workerpool0"]) if task["type"] == NODES[1] else 0)
    return [
        "torchrun",
        f"--nnodes={len(hosts)}",
        f"--node-rank={rank}",
        f"--nproc-per-node={gpus}",
        f"--master-addr={hosts[0].rsplit(':', 1)[0]}",
        f"--master-port={PORT}",
        *script,
    ]


def main() -> None:
    """Replace this process by torchrun, so that its exit code is the replica's."""
    if len(sys.argv) < 3 or not sys.argv[1].startswith("--gpus="):
        raise SystemExit("usage: launch.py --gpus=N SCRIPT [ARGS]")
    gpus = int(sys.argv[1].removeprefix("--gpus="))
    command = torchrun(os.environ.get("CLUSTER_SPEC", ""), gpus, sys.argv[2:])
    print("+", *command, flush=True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
