"""Replica of the job: ``python -m parameter_server.task --data TRAIN.npz [--seconds N]``.

Servers hold the weights of a logistic regression. Workers compute gradients on random batches and
send them without waiting for each other. The primary evaluates and saves the model, which ends the
job.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Final

import numpy as np

from parameter_server import cluster
from parameter_server.shard import Server, call, pack, unpack

BATCH: Final = 64
RATE: Final = 0.01
FEATURES: Final = 5


def load(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Load the features of Titanic passengers, with a constant 1, and the labels (survival)."""
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


def shards(servers: tuple[str, ...]) -> list[np.ndarray]:
    """Return the indices of the weights of each server."""
    return np.array_split(np.arange(FEATURES), len(servers))


def pull(servers: tuple[str, ...]) -> np.ndarray:
    """Fetch all weights from all servers."""
    return np.concatenate([unpack(call(host)) for host in servers])


def work(servers: tuple[str, ...], x: np.ndarray, y: np.ndarray, seed: int, until: float) -> int:
    """Send gradients until time ``until``, and return their number."""
    random, sent = np.random.default_rng(seed), 0
    while time.monotonic() < until:
        rows = random.integers(0, len(x), BATCH)
        predicted = 1 / (1 + np.exp(-x[rows] @ pull(servers)))
        gradient = x[rows].T @ (predicted - y[rows]) / BATCH
        for host, shard in zip(servers, shards(servers), strict=True):
            call(host, pack(gradient[shard]))
        sent += 1
    return sent


def finish(servers: tuple[str, ...], x: np.ndarray, y: np.ndarray) -> None:
    """Evaluate the weights and save them to AIP_MODEL_DIR."""
    weights = pull(servers)
    accuracy = float(np.mean((x @ weights > 0) == (y > 0.5)))
    result = json.dumps({"accuracy": round(accuracy, 4), "weights": weights.tolist()})
    name = os.environ.get("AIP_MODEL_DIR", "model")
    folder = Path("/gcs/" + name.removeprefix("gs://") if name.startswith("gs://") else name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text(result)
    print(result, flush=True)


def main(argv: list[str] | None = None) -> None:
    """Run the role of this replica."""
    parser = argparse.ArgumentParser(prog="parameter_server.task")
    parser.add_argument("--data", required=True)
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args(argv)
    replica = cluster.this_replica()
    print(f"{replica.role} {replica.index}, servers: {', '.join(replica.servers)}", flush=True)
    if replica.role == "server":
        size = len(shards(replica.servers)[replica.index])
        Server(replica.port, size, RATE).serve_forever()  # until the service stops it
    x, y = load(options.data)
    pull(replica.servers)  # wait for all servers before the time starts
    until = time.monotonic() + options.seconds
    if replica.role == "worker":
        sent = work(replica.servers, x, y, replica.index, until)
        print(f"sent {sent} gradients", flush=True)
        return
    time.sleep(options.seconds)
    finish(replica.servers, x, y)


if __name__ == "__main__":
    main()
