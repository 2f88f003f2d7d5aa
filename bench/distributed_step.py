"""One process of the measurement: data-parallel steps, timed. ``distributed_step.py FILE STEPS``.

The first rank writes to FILE the time of day after its first step, and the seconds of each later
one, as JSON.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, ROWS = 512, 64


def main() -> None:
    """Train for some steps; all ranks leave together."""
    file, count = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = torch.randn(ROWS, WIDTH)
    first, seconds = 0.0, list[float]()
    for step in range(count + 1):
        began = time.perf_counter()
        optimizer.zero_grad()
        model(rows).square().mean().backward()  # gradients of all ranks are summed here
        optimizer.step()
        if step:
            seconds.append(time.perf_counter() - began)
        else:
            first = time.time()
    if dist.get_rank() == 0:
        text = json.dumps({"first": first, "steps": seconds})
        file.with_suffix(".part").write_text(text)
        file.with_suffix(".part").rename(file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
