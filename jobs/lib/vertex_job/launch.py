"""Start torchrun on this node: ``python -m vertex_job.launch [--processes N] -- train.py [ARGS]``.

What follows ``--`` is torchrun's: a script, or ``-m MODULE``. Every replica of pools 0 and 1 runs
the same command line, whatever the pools are. One process starts for each GPU, or one without GPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from vertex_job.cluster import Cluster, processes, read_cluster
from vertex_job.errors import VertexJobError


def torchrun(cluster: Cluster, count: int, program: Sequence[str]) -> list[str]:
    """The command line for this node; ``count`` is its number of processes.

    A module and not the script ``torchrun``: the script may belong to another environment.
    """
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={count}"]
    if cluster.nodes == 1:
        return [*command, "--standalone", *program]
    return [
        *command,
        f"--nnodes={cluster.nodes}",
        f"--node-rank={cluster.node_rank}",
        f"--master-addr={cluster.master_address}",
        f"--master-port={cluster.master_port}",
        *program,
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Replace this process by torchrun, so that its exit code is the replica's."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="python -m vertex_job.launch",
        usage="%(prog)s [--processes N] -- SCRIPT [ARGUMENTS]",
        description="Start torchrun on this node of a Vertex AI job.",
    )
    parser.add_argument("--processes", type=int, help="processes of a node; default: one for a GPU")
    if "--" not in given:
        if given and given[0] in ("-h", "--help"):
            parser.parse_args(given)
        parser.error("no program: write -- SCRIPT [ARGUMENTS], or -- -m MODULE [ARGUMENTS]")
    split = given.index("--")
    options, program = parser.parse_args(given[:split]), given[split + 1 :]
    count = processes() if options.processes is None else options.processes
    if count < 1 or not program:
        parser.error("--processes is 1 or more" if program else "nothing follows --")
    try:
        command = torchrun(read_cluster(), count, program)
    except VertexJobError as error:
        raise SystemExit(f"error: {error}") from None
    print("+", *command, flush=True)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
