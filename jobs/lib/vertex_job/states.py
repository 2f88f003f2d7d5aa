"""Background checkpoints of models and optimizers; needs torch."""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from vertex_job.checkpoints import BackgroundSaver, Checkpoints
from vertex_job.ranks import Ranks


class StateSaver:
    """Saver of training states, for trainings with the whole state on every rank.

    The first rank reads and writes; all ranks call the methods.
    """

    def __init__(self, checkpoints: Checkpoints, ranks: Ranks) -> None:
        self._checkpoints, self._ranks = checkpoints, ranks
        self._saver = BackgroundSaver(checkpoints)
        self._host: dict[tuple[Any, ...], torch.Tensor] = {}

    def resume(self) -> tuple[int, dict[str, Any]]:
        """Return step and states of the newest complete checkpoint, or 0 and no states.

        The first rank reads each file once and sends it to the others.
        """
        step, files = 0, dict[str, bytes]()
        if self._ranks.first:
            self._checkpoints.clear_partial()
            step, files = self._checkpoints.read_newest() or (0, {})
        step, names = self._ranks.share((step, list(files)))
        states: dict[str, Any] = {}
        for name in names:
            data = self._ranks.share_bytes(files.pop(name, b""))
            states[name] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return step, states

    def save(self, step: int, states: Mapping[str, Any]) -> None:
        """Copy the states and start writing them to files of these names.

        Waits until the previous checkpoint is written. Raises what that raised.
        """
        if not self._ranks.first:
            return
        self._saver.wait()  # it reads from the memory that is copied into
        copied = {name: self._copy(state, (name,)) for name, state in states.items()}
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._saver.save(step, {n: partial(torch.save, state) for n, state in copied.items()})

    def wait(self) -> None:
        """Wait until the last checkpoint is complete, and raise its errors."""
        if self._ranks.first:
            self._saver.wait()
        self._ranks.meet()

    def _copy(self, value: Any, place: tuple[Any, ...]) -> Any:
        """Copy a state to host memory, which is pinned for GPUs and allocated once."""
        if isinstance(value, torch.Tensor):
            host = self._host.get(place)
            if host is None or (host.shape, host.dtype) != (value.shape, value.dtype):
                host = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
                self._host[place] = host
            return host.copy_(value.detach(), non_blocking=True)
        if isinstance(value, dict):
            return {key: self._copy(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._copy(item, (*place, index)) for index, item in enumerate(value)]
        return copy.deepcopy(value)
