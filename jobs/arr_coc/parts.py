"""Assignment of checkpoint files to processes. Does not need torch."""

from __future__ import annotations

import re

from vertex_job.checkpoints import Checkpoint
from vertex_job.errors import CheckpointError

#: DeepSpeed's name of the part of the optimizer that one process holds.
_PART = re.compile(r"(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_\d+_optim_states\.pt")


def files_of(found: Checkpoint, rank: int, world: int) -> list[str]:
    """Return the files for one process: all but the parts of other processes.

    Raises CheckpointError if the parts are not those of so many processes.
    """
    ranks = {name: int(match[1]) for name in found.files if (match := _PART.fullmatch(name))}
    if sorted(ranks.values()) != list(range(world)):
        raise CheckpointError(
            f"the checkpoint of step {found.step} was saved by {len(ranks)} processes, not "
            f"{world}: ZeRO-2 resumes only with the same number. Use as many machines and GPUs, or "
            "another output folder to start again"
        )
    return [name for name in found.files if ranks.get(name, rank) == rank]
