"""Measure the training code of jobs/ on a GPU, and check the local cloud's view of GPUs.

``PYTHONPATH=jobs:jobs/lib:localcloud python bench/gpu.py [--size 1.3B]`` needs PyTorch. ``--size
tiny`` runs on CPUs, and only tests the script.
"""

# The training image has torch. The development environment does not install torch.
# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch.nn import functional
from torch.nn.attention import sdpa_kernel
from transformer import model as models
from transformer import task
from transformer.config import Config
from transformer.data import Series, made_up
from vertex_job.checkpoints import Checkpoints
from vertex_job.ranks import Ranks
from vertex_job.states import StateSaver

from localgcp.system import gpus

SIZES = {
    "tiny": Config(layers=2, heads=2, width=64, context=128, vocabulary=256, batch=4),
    "125M": Config(layers=12, heads=12, width=768, vocabulary=32768, batch=16),
    "1.3B": Config(layers=24, heads=16, width=2048, vocabulary=32768, batch=4),
}
STEPS = 30


class NeverStops:
    """Replaces the flag of SIGTERM. This flag is never set."""

    requested = False


def seconds(call: Callable[[], object], device: torch.device, rounds: int = 5) -> float:
    """Return the median duration of a call, including the GPU's work, after a warm-up call."""
    taken: list[float] = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def allotment() -> None:
    """Print the number of GPUs that PyTorch finds if one GPU or no GPU is visible."""
    listed = gpus.list_gpus()
    print(f"GPUs: {len(listed)} listed ({', '.join(gpu.name for gpu in listed)})")
    code = "import torch; print(torch.cuda.device_count(), torch.cuda.is_available())"
    for value in (*(gpu.id for gpu in listed), ""):
        env = {**os.environ, gpus.VISIBLE: value}
        command = [sys.executable, "-c", code]
        seen = subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout
        wanted = "1 True" if value else "0 False"
        print(f"GPUs: {gpus.VISIBLE}={value}: PyTorch sees {seen.strip()}, expected {wanted}")


def kernels(config: Config, device: torch.device, dtype: torch.dtype) -> None:
    """Print the speed of each attention kernel, forward and backward, relative to the slowest."""
    shape = (4, config.heads, config.context, config.width // config.heads)
    x = torch.randn(shape, device=device, dtype=dtype, requires_grad=True)

    def both() -> None:
        functional.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()

    results: dict[str, float] = {}
    for name, kernel in models.KERNELS.items():
        try:
            with sdpa_kernel(kernel):
                results[name] = seconds(both, device)
        except RuntimeError:
            print(f"attention {name}: not supported here")
    for name, taken in results.items():
        print(f"attention {name}: {max(results.values()) / taken:.2f} x the slowest")


def bare_rate(config: Config, me: Ranks, series: Series) -> float:
    """Return tokens per second of the same steps without batches, logs, signals and checkpoints."""
    model = models.new_model(config).to(me.device)
    optimizer = task.new_optimizer(model, config, me)
    samples = torch.from_numpy(series.batch(0, config.batch, 0, 1)).to(me.device)
    dtype = getattr(torch, config.precision)

    def step() -> None:
        for part in samples.split(config.microBatch):
            with torch.autocast(me.device.type, dtype):
                loss = model(part)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    with models.attention(models.choose_attention(config, me.device, dtype)):
        return config.batch * config.context / seconds(step, me.device, STEPS)


def loop(config: Config, me: Ranks, series: Series) -> None:
    """Print the rate of ``task.train`` relative to the bare loop."""
    bare = bare_rate(config, me, series)
    if me.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    model, figures = task.train(config, me, series, NeverStops())  # pyright: ignore[reportArgumentType]
    assert figures
    print(f"loop: {figures['tokens_per_second'] / bare:.3f} x the bare loop; {figures}")
    tokens = config.microBatch * config.context
    predicted = 14 * sum(weights.numel() for weights in model.parameters())
    predicted += tokens * (36 * config.layers * config.width + 12 * config.vocabulary)
    if peak := figures.get("peak_memory_gib"):
        print(f"memory: {peak * 2**30 / predicted:.3f} x the prediction of a stack file's model")


def saving(config: Config, me: Ranks) -> None:
    """Print the share of a checkpoint's writing time during which the training waits."""
    model = models.new_model(config).to(me.device)
    optimizer = task.new_optimizer(model, config, me)
    model(torch.zeros((1, config.context + 1), dtype=torch.int64, device=me.device)).backward()
    optimizer.step()
    saver = StateSaver(Checkpoints("background"), me)
    for number in (1, 2):  # the first checkpoint allocates memory of the host
        began = time.perf_counter()
        saver.save(number, {"model.pt": model.state_dict(), "optimizer.pt": optimizer.state_dict()})
        waited = time.perf_counter() - began
        saver.wait()
        whole = time.perf_counter() - began
    print(f"checkpoint: the training waits for {waited / whole:.1%} of {whole:.2f} s")


def main() -> None:
    """Run all measurements in a temporary folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", choices=SIZES, default="1.3B")
    size = SIZES[parser.parse_args().size]
    config = Config(**{**vars(size), "steps": STEPS, "logEvery": 15, "warmup": 5})
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU on this machine"
    print(f"{time.strftime('%Y-%m-%d')}, {name}, torch {torch.__version__}")
    me = Ranks(0, 1, device)
    series = Series([made_up(64, 2 * config.context, config.vocabulary)], config.context, 1 << 16)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        allotment()
        kernels(config, device, getattr(torch, config.precision))
        saving(config, me)
        loop(config, me, series)


if __name__ == "__main__":
    main()
