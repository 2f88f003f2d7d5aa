"""One process: ``python -m vertex_job.launch -- -m ddp.task [--steps N] [--checkpoint-every N]``.

Every so many steps the first rank saves weights, optimizer and step; so do all together at SIGTERM.
A start loads the newest whole checkpoint, on the same or another number of workers. An interrupted
and a quiet run end with the same weights.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import io
import json
import sys
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from vertex_job.checkpoints import Checkpoints
from vertex_job.errors import VertexJobError
from vertex_job.folders import checkpoint_folder, model_folder
from vertex_job.stop import StopRequest
from vertex_job.stores import store_at

from ddp import ranks
from ddp.model import Digits, accuracy, batch, load, new_model
from ddp.ranks import Ranks

#: Exit code of a process that SIGTERM ended: the training is not over.
STOPPED = 143


def train(
    options: argparse.Namespace,
    me: Ranks,
    data: Digits,
    checkpoints: Checkpoints,
    stop: StopRequest,
) -> tuple[nn.Module, bool]:
    """Train to the last step, or to a stop; returns the model and whether it is done."""
    model = new_model().to(me.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=0.9)
    step = resume(model, optimizer, me, checkpoints)
    wrapped = DistributedDataParallel(model) if me.world > 1 else model
    loss_of = nn.CrossEntropyLoss()
    while step < options.steps:
        mine = batch(data, step, options.batch, me.rank, me.world)
        optimizer.zero_grad()
        loss = loss_of(wrapped(mine.images.to(me.device)), mine.digits.to(me.device))
        loss.backward()
        optimizer.step()
        step += 1
        stopping = me.agree(stop.requested)
        if step % options.checkpoint_every == 0 or step == options.steps or stopping:
            if me.first:
                save(step, model, optimizer, checkpoints)
                print(f"step {step}: loss {loss.item():.6f}, saved", flush=True)
            me.meet()
        if stopping and step < options.steps:
            return model, False
    return model, True


def resume(
    model: nn.Module, optimizer: torch.optim.Optimizer, me: Ranks, checkpoints: Checkpoints
) -> int:
    """Load the newest whole checkpoint into both; returns the step to go on from."""
    step = 0
    if me.first:
        checkpoints.clear_partial()
        newest = checkpoints.newest()
        step = newest.step if newest else 0
    step = me.share(step)
    if step:
        found = checkpoints.at(step)
        model.load_state_dict(_unpack(found.read("model.pt"), me.device))
        optimizer.load_state_dict(_unpack(found.read("optimizer.pt"), me.device))
    if me.first:
        print(f"starting at step {step} with {me.world} processes", flush=True)
    return step


def save(
    step: int, model: nn.Module, optimizer: torch.optim.Optimizer, checkpoints: Checkpoints
) -> None:
    """Save all that the next step depends on."""
    files = {"model.pt": _pack(model.state_dict()), "optimizer.pt": _pack(optimizer.state_dict())}
    checkpoints.save(step, files)


def finish(model: nn.Module, test: Digits, steps: int, world: int) -> None:
    """Write weights and metrics where the model goes."""
    weights = {name: each.cpu().numpy() for name, each in model.state_dict().items()}
    packed = io.BytesIO()
    np.savez(packed, **weights)
    metrics = {"test_accuracy": round(accuracy(model.cpu(), test), 4), "steps": steps}
    store = store_at(model_folder())
    store.write("weights.npz", packed.getvalue())
    store.write("metrics.json", json.dumps(metrics).encode())
    print(json.dumps({**metrics, "processes": world}), flush=True)


def _pack(state: Any) -> bytes:
    packed = io.BytesIO()
    torch.save(state, packed)
    return packed.getvalue()


def _unpack(data: bytes, device: torch.device) -> Any:
    return torch.load(io.BytesIO(data), map_location=device, weights_only=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The arguments of a job file."""
    parser = argparse.ArgumentParser(prog="ddp.task")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=96, help="of all processes together")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Train to the end from wherever the last attempt came; returns the exit code."""
    options = parse(argv)
    stop = StopRequest()
    me = ranks.join()
    if options.batch % me.world:
        # Else the mean of the ranks' means were not the mean of the batch.
        raise SystemExit(f"error: --batch {options.batch} is no multiple of {me.world} processes")
    try:
        train_set, test = load()
        model, done = train(options, me, train_set, Checkpoints(checkpoint_folder()), stop)
        if done and me.first:
            finish(model, test, options.steps, me.world)
        me.meet()
    except VertexJobError as error:
        raise SystemExit(f"error: {error}") from None
    finally:
        ranks.leave()
    return 0 if done else STOPPED


if __name__ == "__main__":
    sys.exit(main())
