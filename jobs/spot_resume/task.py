"""Logistic regression on Titanic passengers that resumes after a loss of its machine.

``python -m spot_resume.task --data TRAIN.npz [--steps N] [--checkpoint-every N]``

Every so many steps all that the training is made of (weights, step, state of the random numbers)
is written to a new file in AIP_CHECKPOINT_DIR; at the start the newest complete one is loaded.
An interrupted and a quiet run end with the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

BATCH, RATE, SEED = 64, 0.01, 7


@dataclass
class State:
    """State that the next step depends on."""

    weights: np.ndarray
    step: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    def advance(self, x: np.ndarray, y: np.ndarray) -> None:
        """Compute one step of stochastic gradient descent."""
        rows = self.random.integers(0, len(x), BATCH)
        predicted = 1 / (1 + np.exp(-x[rows] @ self.weights))
        self.weights = self.weights - RATE * x[rows].T @ (predicted - y[rows]) / BATCH
        self.step += 1


def folder(variable: str, default: str) -> Path:
    """Return the mounted path (/gcs/BUCKET/PATH) of a directory variable (gs://BUCKET/PATH)."""
    name = os.environ.get(variable, default)
    path = Path("/gcs/" + name.removeprefix("gs://") if name.startswith("gs://") else name)
    path.mkdir(parents=True, exist_ok=True)
    return path


def save(state: State, checkpoints: Path) -> None:
    """Write a checkpoint under a new name: an object appears only when it is complete."""
    random = json.dumps(state.random.bit_generator.state)
    target = checkpoints / f"step-{state.step:09d}.npz"
    with target.open("wb") as file:
        np.savez(file, weights=state.weights, step=state.step, random=random)


def restore(checkpoints: Path) -> State | None:
    """Return the state of the newest valid checkpoint, or None."""
    for path in sorted(checkpoints.glob("step-*.npz"), reverse=True):
        try:
            with np.load(path, allow_pickle=False) as saved:
                state = State(saved["weights"], int(saved["step"]))
                state.random.bit_generator.state = json.loads(str(saved["random"]))
                return state
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as bad:
            print(f"{path.name} is incomplete ({bad}); trying the previous checkpoint", flush=True)
    return None


def load(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Load the features of passengers, with a constant 1, and the labels (survival)."""
    with np.load(path, allow_pickle=False) as data:
        age = np.nan_to_num(data["age"].astype(float), nan=30.0) / 30
        female = (data["sex"] == "female").astype(float)
        columns = [
            np.ones(len(age)),
            data["passenger_class"] - 2.0,
            female,
            age,
            data["party_size"],
        ]
        return np.stack(columns, axis=1), data["survived"].astype(float)


def main(argv: list[str] | None = None) -> State:
    """Train from the newest checkpoint to the end."""
    parser = argparse.ArgumentParser(prog="spot_resume.task")
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--checkpoint-every", type=int, default=500)
    options = parser.parse_args(argv)
    x, y = load(options.data)
    checkpoints = folder("AIP_CHECKPOINT_DIR", "checkpoints")
    state = restore(checkpoints) or State(np.zeros(x.shape[1]))
    print(f"starting at step {state.step} of {options.steps}", flush=True)
    while state.step < options.steps:
        state.advance(x, y)
        if state.step % options.checkpoint_every == 0 or state.step == options.steps:
            save(state, checkpoints)
    accuracy = float(np.mean((x @ state.weights > 0) == (y > 0.5)))
    result = {"step": state.step, "accuracy": round(accuracy, 4), "weights": state.weights.tolist()}
    (folder("AIP_MODEL_DIR", "model") / "model.json").write_text(json.dumps(result))
    print(json.dumps(result), flush=True)
    return state


if __name__ == "__main__":
    main()
