"""Time series as tokens, in memory-mapped shards.

A shard is a ``.npy`` file of uint16, series x tokens: each value of a series is rounded to one of
``vocabulary`` levels. ``python -m transformer.data --out FOLDER`` writes shards of made-up series.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SEED = 17
#: Values beyond so many standard deviations are the first and the last level.
_DEVIATIONS = 4.0


class DataError(Exception):
    """The shards are invalid; the message names the file."""


def quantize(values: np.ndarray, vocabulary: int) -> np.ndarray:
    """Quantize series (N x T) to levels (uint16), each scaled by its mean and deviation."""
    mean, deviation = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True)
    scaled = (values - mean) / np.maximum(deviation, 1e-9) / _DEVIATIONS
    levels = np.clip((scaled + 1) / 2 * vocabulary, 0, vocabulary - 1)
    return levels.astype(np.uint16)


def made_up(series: int, length: int, vocabulary: int, seed: int = SEED) -> np.ndarray:
    """Generate series of three waves and noise (series x length, uint16)."""
    random = np.random.default_rng(seed)
    time = np.arange(length)
    waves = [
        random.uniform(0.5, 2, (series, 1))
        * np.sin(time / random.uniform(4, 200, (series, 1)) + random.uniform(0, 7, (series, 1)))
        for _ in range(3)
    ]
    return quantize(sum(waves) + random.normal(0, 0.1, (series, length)), vocabulary)


class Series:
    """Series of all shards, with a batch for each step."""

    def __init__(self, shards: Sequence[np.ndarray], context: int, vocabulary: int) -> None:
        self._shards, self._context, self._vocabulary = shards, context, vocabulary
        self._counts = np.cumsum([len(shard) for shard in shards])

    @classmethod
    def open(cls, folder: str, context: int, vocabulary: int) -> Series:
        """Memory-map the shards of a folder. Raises DataError."""
        files = sorted(Path(folder).glob("*.npy"))
        if not files:
            raise DataError(
                f"{folder} has no .npy files; generate some with `python -m transformer.data`"
            )
        shards: list[np.ndarray] = []
        for file in files:
            try:
                shard = np.load(file, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError) as error:
                raise DataError(f"{file} cannot be read: {error}") from None
            if shard.dtype != np.uint16 or shard.ndim != 2 or not len(shard):
                kind = f"{shard.dtype}, {' x '.join(map(str, shard.shape))}"
                raise DataError(f"{file} must be uint16 with shape series x tokens, but is {kind}")
            if shard.shape[1] <= context:
                raise DataError(f"{file}: series have {shard.shape[1]} tokens: reduce context")
            shards.append(shard)
        return cls(shards, context, vocabulary)

    def batch(self, step: int, size: int, rank: int, world: int) -> np.ndarray:
        """Return this rank's samples of a step (size / world x context + 1, int64).

        The batch of all ranks depends on the step alone: a run that resumes, on any number of
        processes, sees the samples that it would have seen. Raises DataError.
        """
        random = np.random.default_rng((SEED, step))
        rows, places = random.integers(self._counts[-1], size=size), random.random(size)
        samples = np.stack(
            [
                self._sample(row, at)
                for row, at in zip(rows[rank::world], places[rank::world], strict=True)
            ]
        )
        if (highest := int(samples.max())) >= self._vocabulary:
            raise DataError(f"the data has level {highest}, but vocabulary is {self._vocabulary}")
        return samples.astype(np.int64)

    def _sample(self, row: int, place: float) -> np.ndarray:
        shard = int(np.searchsorted(self._counts, row, side="right"))
        series = self._shards[shard][row - self._counts[shard]]
        start = int(place * (len(series) - self._context))
        return np.asarray(series[start : start + self._context + 1])


def main(argv: list[str] | None = None) -> None:
    """Write shards of generated series."""
    parser = argparse.ArgumentParser(prog="transformer.data", description=main.__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="output folder, local or below /gcs"
    )
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--series", type=int, default=256, help="number of series per shard")
    parser.add_argument("--length", type=int, default=4096, help="number of tokens per series")
    parser.add_argument("--vocabulary", type=int, default=1024)
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    for shard in range(options.shards):
        levels = made_up(options.series, options.length, options.vocabulary, SEED + shard)
        np.save(options.out / f"shard-{shard:05d}.npy", levels)
    print(f"{options.shards} shards of {options.series} x {options.length} tokens in {options.out}")


if __name__ == "__main__":
    main()
