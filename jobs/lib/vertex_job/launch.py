"""Run torchrun on this node: ``python -m vertex_job.launch [--processes N] -- train.py [ARGS]``.

What follows ``--`` is torchrun's: a script, or ``-m MODULE``. Every replica of pools 0 and 1 runs
the same command line, whatever the pools are. One process starts for each GPU that PyTorch can use,
or one without GPUs.

The exit code is that of the process that failed first, 137 of one that was killed, and 143 after
SIGTERM: torchrun's own is always 1, so that a lost machine would look like a mistake in the code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from vertex_job.cluster import Cluster, read_cluster
from vertex_job.errors import VertexJobError

#: How torchrun is started by hand; its own arguments follow.
MODULE: Final = (sys.executable, "-m", "torch.distributed.run")


def torchrun(cluster: Cluster, count: int, program: Sequence[str], restarts: int = 0) -> list[str]:
    """Return torchrun's command line for this node; ``count`` is the number of processes.

    A module and not the script ``torchrun``: the script may belong to another environment.
    """
    command = [*MODULE, f"--nproc-per-node={count}"]
    if restarts:
        command.append(f"--max-restarts={restarts}")
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
    """Run torchrun in this process, and return the exit code of the first failed process."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="python -m vertex_job.launch",
        usage="%(prog)s [--processes N] [--max-restarts N] -- SCRIPT [ARGUMENTS]",
        description="Start torchrun on this node of a Vertex AI job.",
    )
    parser.add_argument("--processes", type=int, help="processes per node; default: one per GPU")
    parser.add_argument(
        "--max-restarts", type=int, default=0, help="restarts of a node's processes; default: none"
    )
    if "--" not in words:
        if words and words[0] in ("-h", "--help"):
            parser.parse_args(words)
        parser.error(
            "the program is missing: write -- SCRIPT [ARGUMENTS], or -- -m MODULE [ARGUMENTS]"
        )
    split = words.index("--")
    options, program = parser.parse_args(words[:split]), words[split + 1 :]
    processes: int | None = options.processes
    if (processes is not None and processes < 1) or options.max_restarts < 0 or not program:
        wrong = "--processes must be 1 or more, --max-restarts 0 or more"
        parser.error(wrong if program else "nothing follows --")
    try:
        cluster = read_cluster()
    except VertexJobError as error:
        raise SystemExit(f"error: {error}") from None
    count = processes or usable_gpus() or 1
    command = torchrun(cluster, count, program, options.max_restarts)
    print("+", *command, flush=True)
    sys.exit(run(command[len(MODULE) :]))


def run(arguments: Sequence[str]) -> int:
    """Run torchrun with these arguments in this process.

    Its signal handlers end the processes, as they do in torchrun's own process.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException  # pyright: ignore
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # pyright: ignore
    from torch.distributed.run import main as run_torchrun  # pyright: ignore[reportMissingImports]

    try:
        run_torchrun(list(arguments))
    except ChildFailedError as failed:
        print(failed, file=sys.stderr, flush=True)
        return exit_code(failed.get_first_failure()[1].exitcode)
    except SignalException as stopped:  # torchrun has sent the signal on, and waited
        return 128 + stopped.sigval
    return 0


def usable_gpus() -> int:
    """Return the number of GPUs that PyTorch can use, by CUDA_VISIBLE_DEVICES and its own build."""
    import torch  # pyright: ignore[reportMissingImports]

    return torch.cuda.device_count()


def exit_code(code: int) -> int:
    """Convert a process's exit code to that of a shell: -9 (SIGKILL) is 137."""
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    main()
