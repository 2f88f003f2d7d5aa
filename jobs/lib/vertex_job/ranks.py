"""Processes of a training that torchrun started; needs torch.

Vertex AI describes machines (``vertex_job.cluster``), torchrun the processes on them.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist

from vertex_job.transport import NcclLog, describe

#: Bytes that one broadcast sends.
_PIECE = 64 << 20


@dataclass(frozen=True)
class Ranks:
    """Rank, number of processes and device of this process; all processes call its methods."""

    rank: int
    world: int
    device: torch.device
    backend: str = "gloo"
    network: str = ""
    """Network between the nodes in NCCL's words, like ``FasTrak`` or ``Socket``; on the first rank
    of several nodes, if NCCL's log names it."""

    @property
    def first(self) -> bool:
        """Return True on the first rank, which saves and reports."""
        return self.rank == 0

    def agree(self, flag: bool) -> bool:
        """Return True on all ranks if the flag is set on any rank."""
        if self.world == 1:
            return flag
        self._flag.fill_(int(flag))
        dist.all_reduce(self._flag, op=dist.ReduceOp.MAX)
        return bool(self._flag.item())

    def share(self, value: Any) -> Any:
        """Return the first rank's value on all ranks."""
        if self.world == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, device=self._messages)
        return values[0]

    def share_bytes(self, data: bytes) -> bytes | bytearray:
        """Return the first rank's bytes on all ranks, sent in pieces of 64 MiB."""
        if self.world == 1:
            return data
        size = self.share(len(data))
        received = bytearray(data) if self.first else bytearray(size)
        for start in range(0, size, _PIECE):
            view = memoryview(received)[start : start + _PIECE]
            piece = torch.frombuffer(view, dtype=torch.uint8)
            sent = piece.to(self._messages)
            dist.broadcast(sent, src=0)
            piece.copy_(sent)
        return received

    def meet(self) -> None:
        """Wait for all ranks."""
        self.agree(False)

    @cached_property
    def _messages(self) -> torch.device:
        """Return the device for messages: NCCL sends only from GPUs."""
        return self.device if self.backend == "nccl" else torch.device("cpu")

    @cached_property
    def _flag(self) -> torch.Tensor:
        """Return a tensor for all calls, which outlives the process group.

        gloo's thread releases the tensor after the call. If that were the last reference, the
        thread would wait for the GIL, which ``destroy_process_group`` holds while it waits for the
        thread (torch 2.4).
        """
        return torch.zeros(1, dtype=torch.int32, device=self._messages)


def join() -> Ranks:
    """Connect to the other processes; without torchrun, return a single rank.

    NCCL connects them if each process of the machine has its own GPU, otherwise gloo: NCCL refuses
    two processes on one GPU.
    """
    gpus = torch.cuda.device_count()
    if not dist.is_torchelastic_launched():
        return Ranks(0, 1, torch.device("cuda:0" if gpus else "cpu"))
    local, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    backend = "nccl" if gpus >= here else "gloo"
    device = torch.device("cuda", local % gpus) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
        if backend == "gloo" and local == 0:
            print(f"{here} processes share {gpus} GPUs: gloo connects them, not NCCL", flush=True)
    nodes = int(os.environ["WORLD_SIZE"]) // here
    connects = backend == "nccl" and nodes > 1
    with NcclLog() if connects and os.environ["RANK"] == "0" else nullcontext() as log:
        dist.init_process_group(backend)
        ranks = Ranks(dist.get_rank(), dist.get_world_size(), device, backend)
        if connects:
            ranks.meet()  # NCCL connects at the first call
    if log is None:
        return ranks
    print(describe(log.network, nodes), flush=True)
    return replace(ranks, network=log.network)


def leave() -> None:
    """Disconnect from the other processes at the end."""
    if dist.is_initialized():
        dist.destroy_process_group()
