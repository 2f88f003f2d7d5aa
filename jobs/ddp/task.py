"""A process: ``python -m vertex_job.launch -- -m ddp.task [--steps N] [--checkpoint-every N]``.

Every so many steps, and at SIGTERM, the first rank saves weights, optimizer and step while the
training goes on. A start loads the newest whole checkpoint, on the same or another number of
workers. An interrupted and a quiet run end with the same weights.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import io
import json
import sys

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from vertex_job import ranks
from vertex_job.checkpoints import Checkpoints
from vertex_job.errors import VertexJobError
from vertex_job.folders import checkpoint_folder, model_folder
from vertex_job.ranks import Ranks
from vertex_job.states import StateSaver
from vertex_job.stop import StopRequest
from vertex_job.stores import store_at

from ddp.model import Digits, accuracy, batch, load, new_model

#: Exit code of a process that SIGTERM ended: the training is not over.
STOPPED = 143


def train(
    options: argparse.Namespace,
    me: Ranks,
    data: Digits,
    checkpoints: Checkpoints,
    stop: StopRequest,
) -> tuple[nn.Module, bool]:
    """Train until the last step or a stop request; return the model, and True if done."""
    model = new_model().to(me.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=0.9)
    saver = StateSaver(checkpoints, me)
    step, states = saver.resume()
    if states:
        model.load_state_dict(states["model.pt"])
        optimizer.load_state_dict(states["optimizer.pt"])
    if me.first:
        print(f"starting at step {step} with {me.world} processes", flush=True)
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
            saver.save(
                step, {"model.pt": model.state_dict(), "optimizer.pt": optimizer.state_dict()}
            )
            if me.first:
                print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if stopping:
            break
    saver.wait()
    return model, step >= options.steps


def finish(model: nn.Module, test: Digits, steps: int, world: int) -> None:
    """Write weights and metrics to the model's folder."""
    weights = {name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}
    packed = io.BytesIO()
    np.savez(packed, **weights)
    metrics = {"test_accuracy": round(accuracy(model.cpu(), test), 4), "steps": steps}
    store = store_at(model_folder())
    store.write("weights.npz", packed.getvalue())
    store.write("metrics.json", json.dumps(metrics).encode())
    print(json.dumps({**metrics, "processes": world}), flush=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Parse the arguments of a job file."""
    parser = argparse.ArgumentParser(prog="ddp.task")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=96, help="global batch size of all processes")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Train from the newest checkpoint to the end, and return the exit code."""
    options = parse(argv)
    stop = StopRequest()
    me = ranks.join()
    if options.batch % me.world:
        # Else the mean of the ranks' means were not the mean of the batch.
        raise SystemExit(
            f"error: --batch {options.batch} must be a multiple of {me.world} processes"
        )
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
