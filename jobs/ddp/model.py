"""Data, model, and the batch of each step.

The images come with scikit-learn, so nothing is downloaded. Everything is in double precision: sums
in another order then differ by 1e-15, and a run on three workers ends with the weights of one.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn

SEED = 7
CLASSES = 10
#: Every fifth image is kept for the test.
HELD_BACK = 5


@dataclass(frozen=True)
class Digits:
    """Images of 8 x 8 pixels from 0 to 1 (N x 64, float64), with their digits (N, int64)."""

    images: torch.Tensor
    digits: torch.Tensor


def load() -> tuple[Digits, Digits]:
    """Load training and test images."""
    rows = torch.from_numpy(np.loadtxt(_data_file(), delimiter=","))
    x, y = rows[:, :64] / 16, rows[:, 64].long()
    test = torch.arange(len(x)) % HELD_BACK == 0
    return Digits(x[~test], y[~test]), Digits(x[test], y[test])


def _data_file() -> Path:
    """Return the file of ``sklearn.datasets.load_digits``, without importing scikit-learn."""
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("error: install scikit-learn, which contains the data")
    return Path(spec.submodule_search_locations[0]) / "datasets/data/digits.csv.gz"


def new_model() -> nn.Module:
    """Build the model, with the same weights on every rank and at every start."""
    torch.manual_seed(SEED)
    layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    return layers.double()


def batch(data: Digits, step: int, size: int, rank: int, world: int) -> Digits:
    """Return this rank's part of the global batch of a step.

    The global batch depends on the step alone. So a run that resumes sees the batches it would have
    seen, on any number of workers.
    """
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + step)
    rows = torch.randint(len(data.images), (size,), generator=generator)[rank::world]
    return Digits(data.images[rows], data.digits[rows])


def accuracy(model: nn.Module, data: Digits) -> float:
    """Return the share of correctly classified images."""
    with torch.no_grad():
        predicted = model(data.images).argmax(dim=1)
    return float((predicted == data.digits).double().mean())
