"""Small example model, its data, and the batch of each step.

It has the parts of one that allocates attention by relevance: a texture of 13 channels for each
patch of an image, three scorers, a balance between them, and an allocation over the patches.
"""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from vertex_job.stores import store_at

SEED = 11
CLASSES = 10
CHANNELS = 13
PATCH = 2


@dataclass(frozen=True)
class Images:
    """Images from 0 to 1 (N x H x W, float32), and their classes (N, int64)."""

    pixels: torch.Tensor
    classes: torch.Tensor


def load(uri: str) -> Images:
    """Load ``images`` and ``labels`` of an .npz file; without a file, the digits of scikit-learn.

    Raises StoreError or SystemExit.
    """
    if not uri:
        rows = np.loadtxt(_digits(), delimiter=",")
        return _images(rows[:, :64].reshape(-1, 8, 8) / 16, rows[:, 64])
    folder, slash, name = uri.rpartition("/")
    data = store_at(folder or slash or ".").read(name)
    with np.load(io.BytesIO(data), allow_pickle=False) as saved:
        if missing := {"images", "labels"} - set(saved.files):
            raise SystemExit(f"error: {uri} has no array {' and no '.join(sorted(missing))}")
        return _images(saved["images"], saved["labels"])


def _images(pixels: np.ndarray, classes: np.ndarray) -> Images:
    return Images(
        torch.from_numpy(np.asarray(pixels, np.float32)),
        torch.from_numpy(np.asarray(classes, np.int64)),
    )


def _digits() -> Path:
    """Return the file of ``sklearn.datasets.load_digits``, without importing scikit-learn."""
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("error: pass --data=URI, or install scikit-learn for its digits")
    return Path(spec.submodule_search_locations[0]) / "datasets/data/digits.csv.gz"


def batch(data: Images, step: int, size: int, rank: int, world: int) -> Images:
    """Return this rank's part of the global batch, which depends only on the step."""
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + step)
    rows = torch.randint(len(data.pixels), (size,), generator=generator)[rank::world]
    return Images(data.pixels[rows], data.classes[rows])


def texture(pixels: torch.Tensor) -> torch.Tensor:
    """Compute the texture of patches (N x patches x CHANNELS) from images (N x H x W)."""
    n, height, width = pixels.shape
    patches = functional.unfold(pixels[:, None], PATCH, stride=PATCH).transpose(1, 2)
    count = patches.shape[1]
    rows = torch.linspace(-1, 1, height // PATCH, device=pixels.device)
    columns = torch.linspace(-1, 1, width // PATCH, device=pixels.device)
    places = torch.cartesian_prod(rows, columns).expand(n, count, 2)
    one, two, three, four = patches.unbind(-1)
    features = [
        *(one, two, three, four, patches.mean(-1), patches.amin(-1), patches.amax(-1)),
        *(two + four - one - three, three + four - one - two, one + four - two - three),
        *(places[..., 0], places[..., 1], places.square().sum(-1)),
    ]
    return torch.stack(features, dim=-1)


def _layers(width: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(CHANNELS, width), nn.ReLU(), nn.Linear(width, outputs))


class Model(nn.Module):
    """Classifier of images; ``forward`` returns the loss, ``scores`` a score per class."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.scorers = nn.ModuleList(_layers(width, 1) for _ in range(3))
        self.balance = nn.Parameter(torch.zeros(3))
        self.embed = _layers(4 * width, 4 * width)
        self.classify = nn.Linear(4 * width, CLASSES)

    def scores(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return scores (N x CLASSES)."""
        seen = texture(pixels).to(self.balance.dtype)
        relevance = torch.cat([scorer(seen) for scorer in self.scorers], dim=-1)
        allocated = (relevance @ self.balance.softmax(0)).softmax(dim=1)
        return self.classify((allocated[..., None] * self.embed(seen)).sum(dim=1))

    def forward(self, pixels: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of a batch."""
        return functional.cross_entropy(self.scores(pixels).float(), classes)
