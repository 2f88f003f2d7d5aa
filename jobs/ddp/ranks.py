"""This process among all of the training. torchrun describes them; Vertex AI does not."""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Ranks:
    """Rank and number of processes; all of them meet in its methods."""

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """The one that saves and reports."""
        return self.rank == 0

    def agree(self, flag: bool) -> bool:
        """Whether the flag is set on any rank: the same answer on all."""
        if self.world == 1:
            return flag
        self._flag.fill_(int(flag))
        dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
        return bool(self._flag.item())

    def share(self, value: Any) -> Any:
        """The first rank's value, on all."""
        if self.world == 1:
            return value
        told = [value]
        dist.broadcast_object_list(told, src=0, device=self.device)
        return told[0]

    def meet(self) -> None:
        """Wait for all."""
        self.agree(False)

    @cached_property
    def _flag(self) -> torch.Tensor:
        """One tensor for all calls, which outlives the process group.

        gloo's thread lets go of the tensor after the call. Were that the last reference, the thread
        would wait for the GIL, which ``destroy_process_group`` holds while it waits for the thread
        (torch 2.4).
        """
        return torch.zeros(1, dtype=torch.int32, device=self.device)


def join() -> Ranks:
    """Join the others: by NCCL where there are GPUs, else by gloo. Alone without torchrun."""
    cuda = torch.cuda.is_available()
    if not dist.is_torchelastic_launched():
        return Ranks(0, 1, torch.device("cuda:0" if cuda else "cpu"))
    dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank()
    device = torch.device("cpu")
    if cuda:  # every node has as many GPUs as processes
        device = torch.device(f"cuda:{rank % torch.cuda.device_count()}")
        torch.cuda.set_device(device)
    return Ranks(rank, dist.get_world_size(), device)


def leave() -> None:
    """Leave the others, at the end."""
    if dist.is_initialized():
        dist.destroy_process_group()
