"""A process: ``python -m vertex_job.launch -- -m transformer.task --config=FILE [--data=DIR]``.

Every so many steps, and at SIGTERM, the first rank saves weights, optimizer and step while the
training goes on. A start loads the newest whole checkpoint. An interrupted and a quiet run see the
same batches.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from vertex_job import launch, ranks
from vertex_job.checkpoints import Checkpoints
from vertex_job.errors import VertexJobError
from vertex_job.folders import checkpoint_folder, model_folder
from vertex_job.metrics import GpuMeter, TorchGpu
from vertex_job.ranks import Ranks
from vertex_job.states import StateSaver
from vertex_job.stop import StopRequest
from vertex_job.stores import store_at

from transformer.config import Config, ConfigError, read_config
from transformer.data import DataError, Series, made_up
from transformer.model import (
    Transformer,
    attention,
    choose_attention,
    flops_per_token,
    new_model,
)

#: Exit code of a process that SIGTERM ended: the training is not over.
STOPPED = 143


@dataclass
class Speed:
    """Meter of tokens per second and GPU utilization since the last report."""

    config: Config
    me: Ranks
    parameters: int
    began: float = field(default_factory=time.perf_counter)
    steps: int = 0
    meter: GpuMeter = field(default_factory=lambda: GpuMeter(TorchGpu.find()))

    def report(self, step: int, loss: torch.Tensor) -> dict[str, Any]:
        """Print and return the figures of the steps since the last report."""
        value = loss.item()  # waits for the GPU
        seconds = time.perf_counter() - self.began
        rate = self.steps * self.config.batch * self.config.context / seconds
        figures: dict[str, Any] = {"step": step, "loss": round(value, 4)}
        figures["tokens_per_second"] = round(rate, 1)
        flops = rate * flops_per_token(self.config, self.parameters) / self.me.world
        figures |= self.meter.figures(flops)
        if self.me.first:
            print(json.dumps(figures), flush=True)
        self.began, self.steps = time.perf_counter(), 0
        return figures


def new_optimizer(model: nn.Module, config: Config, me: Ranks) -> torch.optim.Optimizer:
    """Build AdamW, with its state sharded over the ranks if configured."""
    options = {"lr": config.learningRate, "betas": (0.9, 0.95), "weight_decay": config.weightDecay}
    options["fused"] = me.device.type == "cuda"
    if config.shardOptimizer and me.world > 1:
        # Here, for importing it prints a warning (torch 2.4).
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **options)
    return torch.optim.AdamW(model.parameters(), **options)


def learning_rate(config: Config, step: int) -> float:
    """Return the rate of a step: linear warm-up, then cosine decay to a tenth."""
    if step < config.warmup:
        return config.learningRate * (step + 1) / config.warmup
    part = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learningRate * (0.55 + 0.45 * math.cos(math.pi * min(1.0, part)))


def batches(series: Series, config: Config, me: Ranks, start: int) -> Iterator[torch.Tensor]:
    """Yield this rank's batch of each step; a thread prepares the next one."""

    def prepare(step: int) -> torch.Tensor:
        samples = torch.from_numpy(series.batch(step, config.batch, me.rank, me.world))
        return samples.pin_memory() if me.device.type == "cuda" else samples

    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        coming = thread.submit(prepare, start)
        for step in range(start, config.steps):
            samples, coming = coming.result(), thread.submit(prepare, step + 1)
            yield samples.to(me.device, non_blocking=True)


def train(
    config: Config, me: Ranks, series: Series, stop: StopRequest
) -> tuple[Transformer, dict[str, Any] | None]:
    """Train until the last step or a stop request. Return the model and final figures."""
    model = new_model(config).to(me.device)
    optimizer = new_optimizer(model, config, me)
    saver = StateSaver(Checkpoints(checkpoint_folder()), me)
    step, states = saver.resume()
    if states:
        model.load_state_dict(states.pop("model.pt"))
        optimizer.load_state_dict(states.pop("optimizer.pt"))
    dtype = getattr(torch, config.precision)
    kernel = choose_attention(config, me.device, dtype)
    parameters = sum(weights.numel() for weights in model.parameters())
    if me.first:
        print(f"attention: {kernel}; {parameters:,} parameters; torch {torch.__version__}")
        print(f"starting at step {step} with {me.world} processes", flush=True)
    if config.compileCache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = config.compileCache
    compiled: nn.Module = torch.compile(model) if config.compile else model
    wrapped = DistributedDataParallel(compiled) if me.world > 1 else compiled
    cast = partial(torch.autocast, me.device.type, dtype, enabled=dtype != torch.float32)
    speed, figures = Speed(config, me, parameters), {"step": step}
    with attention(kernel):
        for samples in batches(series, config, me, step):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, step)
            loss = backward(wrapped, samples, config, cast)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step, speed.steps = step + 1, speed.steps + 1
            stopping = me.agree(stop.requested)
            if step % config.checkpointEvery == 0 or step == config.steps or stopping:
                save(saver, step, model, optimizer, me)
            if step % config.logEvery == 0 or step == config.steps or stopping:
                figures = speed.report(step, loss)
            if stopping:
                break
    saver.wait()
    return model, figures if step >= config.steps else None


def backward(
    wrapped: nn.Module, samples: torch.Tensor, config: Config, cast: partial[torch.autocast]
) -> torch.Tensor:
    """Accumulate the gradients of a batch, and return its mean loss on this rank."""
    parts = samples.split(config.microBatch)
    total = torch.zeros((), device=samples.device)
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        quiet = isinstance(wrapped, DistributedDataParallel) and not last
        with wrapped.no_sync() if quiet else nullcontext():  # gradients are summed once
            with cast():
                loss = wrapped(part) * (len(part) / len(samples))
            loss.backward()
        total += loss.detach()
    return total


def save(
    saver: StateSaver, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, me: Ranks
) -> None:
    """Start saving the state that the next step depends on."""
    if collect := getattr(optimizer, "consolidate_state_dict", None):
        collect()  # of a sharded optimizer: the first rank receives all parts
    if me.first:
        states = {"model.pt": model.state_dict(), "optimizer.pt": optimizer.state_dict()}
        saver.save(step, states)


def open_series(config: Config, me: Ranks) -> Series:
    """Open the shards, or generate series in memory. Raises DataError."""
    if config.data:
        folder = config.data.replace("gs://", "/gcs/", 1)
        return Series.open(folder, config.context, config.vocabulary)
    if me.first:
        print("no data configured: generating series", flush=True)
    shard = made_up(256, 4 * config.context, config.vocabulary)
    return Series([shard], config.context, config.vocabulary)


def main(argv: list[str] | None = None) -> int:
    """Train from the newest checkpoint to the end, and return the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="transformer.task", description="Train a GPT.")
    parser.add_argument("--config", required=True, help="YAML file: gs://, /gcs or local path")
    parser.add_argument("--data", default="", help="folder of shards, overriding the configuration")
    options = parser.parse_args(arguments)
    if torch.cuda.device_count() > 1 and not dist.is_torchelastic_launched():
        launch.main(["--", "-m", "transformer.task", *arguments])
    stop = StopRequest()
    try:
        config = read_config(options.config, data=options.data)
        me = ranks.join()
        if config.batch % me.world:
            raise ConfigError(f"`batch` {config.batch} must be a multiple of {me.world} processes")
        model, figures = train(config, me, open_series(config, me), stop)
        if figures is not None and me.first:
            store = store_at(model_folder())
            store.write("model.pt", partial(torch.save, model.state_dict()))
            figures |= {"nccl_network": me.network} if me.network else {}
            store.write("metrics.json", json.dumps(figures).encode())
        me.meet()
    except (VertexJobError, ConfigError, DataError) as error:
        raise SystemExit(f"error: {error}") from None
    finally:
        ranks.leave()
    return STOPPED if figures is None else 0


if __name__ == "__main__":
    sys.exit(main())
