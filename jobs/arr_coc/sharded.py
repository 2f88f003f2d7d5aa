"""Checkpoints of a DeepSpeed engine: every process saves its own part.

DeepSpeed writes a folder: the first process the weights, each process its part of the optimizer.
Here that folder is one of this machine, for a moment. Its files go where the job's output goes, and
the list that makes them a checkpoint is written when all are there.
"""

# torch and DeepSpeed come with the training image; the development environment has neither.
# pyright: reportMissingImports=false
from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch.distributed as dist
from vertex_job.checkpoints import Checkpoints

from arr_coc.parts import files_of

TAG = "state"


def save(engine: Any, checkpoints: Checkpoints) -> None:
    """Save the state of all processes. Every process must call this function."""
    step = int(engine.global_steps)
    with tempfile.TemporaryDirectory() as folder:
        engine.save_checkpoint(folder, tag=TAG, save_latest=False)
        written = sorted(path for path in Path(folder, TAG).iterdir() if path.is_file())
        for path in written:
            checkpoints.write_part(step, path.name, path)
        names: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(names, [path.name for path in written])  # all have written
    if dist.get_rank() == 0:
        checkpoints.commit(step, [name for part in names for name in part])
    dist.barrier()


def resume(engine: Any, checkpoints: Checkpoints) -> int:
    """Load the newest complete checkpoint into the engine, and return its step or 0.

    Raises CheckpointError if another number of processes saved it.
    """
    shared = [0]
    if dist.get_rank() == 0:
        checkpoints.clear_partial()
        newest = checkpoints.newest()
        shared = [newest.step if newest else 0]
    dist.broadcast_object_list(shared, src=0, device=engine.device)
    if shared[0]:
        checkpoint = checkpoints.at(shared[0])
        names = files_of(checkpoint, dist.get_rank(), dist.get_world_size())
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                checkpoint.fetch(name, Path(folder, TAG, name))
            engine.load_checkpoint(folder, tag=TAG)
    return shared[0]
