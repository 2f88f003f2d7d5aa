"""Whose each file of a checkpoint is. It needs no torch."""

from __future__ import annotations

import re

from vertex_job.checkpoints import Checkpoint
from vertex_job.errors import CheckpointError

#: DeepSpeed's name of the part of the optimizer that one process holds.
_PART = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_\d+_optim_states\.pt")


def files_of(found: Checkpoint, rank: int, world: int) -> list[str]:
    """The files that one process needs: all but the other processes' parts.

    Raises CheckpointError if the parts are not those of so many processes.
    """
    ranks = {name: int(match[1]) for name in found.files if (match := _PART.fullmatch(name))}
    if sorted(ranks.values()) != list(range(world)):
        raise CheckpointError(
            f"the checkpoint of step {found.step} was saved by {len(ranks)} processes, and there "
            f"are {world}: ZeRO-2 resumes on as many as have saved. Take as many machines and "
            "GPUs, or another output folder to begin anew"
        )
    return [name for name in found.files if ranks.get(name, rank) == rank]
