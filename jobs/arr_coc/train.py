"""A process: ``python -m vertex_job.launch -- -m arr_coc.train --config=FILE [--data=FILE]``.

torchrun starts it, and DeepSpeed reads the ranks that torchrun sets. Every so many steps all
processes save, and at SIGTERM; a start resumes from the newest whole checkpoint.
"""

# torch and DeepSpeed come with the training image; the development environment has neither.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.utils import logger
from vertex_job.checkpoints import Checkpoints
from vertex_job.errors import VertexJobError
from vertex_job.folders import checkpoint_folder, model_folder
from vertex_job.stop import StopRequest
from vertex_job.stores import store_at

from arr_coc import sharded
from arr_coc.model import SEED, Images, Model, batch, load

#: Exit code of a process that SIGTERM ended: the training is not over.
STOPPED = 143
#: Every so many images is kept for the test.
HELD_BACK = 5


def join() -> torch.device:
    """Connect the processes, by NCCL if each has its own GPU, otherwise by gloo."""
    gpus, here = torch.cuda.device_count(), int(os.environ["LOCAL_WORLD_SIZE"])  # of torchrun
    device = torch.device("cpu")
    if gpus:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % gpus)
        torch.cuda.set_device(device)
    else:
        # DeepSpeed would compile this operator for a minute, and needs a compiler for it. It helps
        # many processes on one machine without GPUs, and nothing else.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    # NCCL refuses two processes on one GPU.
    deepspeed.init_distributed("nccl" if gpus >= here else "gloo")
    return device


def train(engine: Any, data: Images, options: argparse.Namespace, stop: StopRequest) -> bool:
    """Train until the last step or a stop request; return True after the last step."""
    checkpoints = Checkpoints(checkpoint_folder())
    step = sharded.resume(engine, checkpoints)
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"starting at step {step} with {world} processes", flush=True)
    size, rounds = int(engine.train_batch_size()), int(engine.gradient_accumulation_steps())
    while step < options.steps:
        mine = batch(data, step, size, rank, world)
        pixels, classes = mine.pixels.chunk(rounds), mine.classes.chunk(rounds)
        loss = torch.zeros(())
        for part in zip(pixels, classes, strict=True):
            loss = engine(*(tensor.to(engine.device) for tensor in part))
            engine.backward(loss)
            engine.step()  # changes weights in the last round
        step += 1
        stop_flag = torch.tensor([int(stop.requested)], device=engine.device)
        dist.all_reduce(
            stop_flag, op=dist.ReduceOp.MAX
        )  # each process gets SIGTERM at another moment
        if step % options.checkpoint_every == 0 or step == options.steps or stop_flag.item():
            sharded.save(engine, checkpoints)
            if rank == 0:
                print(f"step {step}: loss {loss.item():.4f}, saved", flush=True)
        if stop_flag.item() and step < options.steps:
            return False
    return True


def finish(model: Model, test: Images, steps: int) -> None:
    """Write weights and metrics to the model's folder; with ZeRO-2 each process has all weights."""
    model.eval()
    device = model.balance.device
    with torch.no_grad():
        predicted = model.scores(test.pixels.to(device)).argmax(dim=1)
    right = (predicted == test.classes.to(device)).double().mean().item()
    metrics = {"test_accuracy": round(right, 4), "steps": steps}
    weights, store = io.BytesIO(), store_at(model_folder())
    torch.save(model.state_dict(), weights)
    store.write("model.pt", weights.getvalue())
    store.write("metrics.json", json.dumps(metrics).encode())
    print(json.dumps(metrics), flush=True)


def split(data: Images) -> tuple[Images, Images]:
    """Split images into training and test sets."""
    test = torch.arange(len(data.pixels)) % HELD_BACK == 0
    return (
        Images(data.pixels[~test], data.classes[~test]),
        Images(data.pixels[test], data.classes[test]),
    )


def main(argv: list[str] | None = None) -> int:
    """Train from the newest checkpoint to the end, and return the exit code."""
    parser = argparse.ArgumentParser(prog="arr_coc.train")
    parser.add_argument(
        "--config",
        required=True,
        help="DeepSpeed configuration; a name without path is in this folder",
    )
    parser.add_argument("--data", default="", help=".npz of images and labels: gs://, /gcs or path")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    options = parser.parse_args(argv)
    stop = StopRequest()
    logger.setLevel(logging.WARNING)
    config = json.loads((Path(__file__).parent / options.config).read_text("utf-8"))
    join()
    torch.manual_seed(SEED)
    model = Model()
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config
    )
    try:
        train_set, test = split(load(options.data))
        done = train(engine, train_set, options, stop)
        if done and dist.get_rank() == 0:
            finish(engine.module, test, options.steps)
        # Not dist.barrier(): its tensor would be released by gloo's thread (vertex_job.ranks).
        everyone = torch.zeros(1, device=engine.device)
        dist.all_reduce(everyone)
    except VertexJobError as error:
        raise SystemExit(f"error: {error}") from None
    finally:
        dist.destroy_process_group()
    return 0 if done else STOPPED


if __name__ == "__main__":
    sys.exit(main())
