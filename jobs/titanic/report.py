"""Reports of a run: metrics, history of epochs, and curves."""

# matplotlib comes with the training environment; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Epoch:
    """Figures of one epoch. Losses are mean binary cross-entropy; accuracy is a fraction."""

    number: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float


def best_epoch(history: Sequence[Epoch]) -> Epoch:
    """Return the first epoch with the lowest validation loss, whose weights are saved."""
    return min(history, key=lambda epoch: epoch.validation_loss)


def metrics_json(metrics: Mapping[str, Any], run: Mapping[str, Any]) -> bytes:
    """Return ``metrics.json``: metrics, and values that vary between runs under ``run``.

    Two runs with the same data and arguments agree in everything but ``run``.

    Raises:
        ValueError: a metric is NaN or infinite, which JSON cannot say.
    """
    document = {**metrics, "run": run}
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def history_csv(history: Sequence[Epoch]) -> bytes:
    """Return ``eval_history.csv``, one line per epoch, with full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "train_loss", "validation_loss", "validation_accuracy"])
    writer.writerows(
        (e.number, e.train_loss, e.validation_loss, e.validation_accuracy) for e in history
    )
    return text.getvalue().encode()


def curves_png(history: Sequence[Epoch]) -> bytes:
    """Return ``curves.png``: losses and validation accuracy by epoch, marking the best epoch."""
    # Figure alone, without pyplot: no display, no global state.
    from matplotlib.figure import Figure

    numbers = [e.number for e in history]
    kept = best_epoch(history).number
    figure = Figure(figsize=(10, 4), layout="constrained")
    losses, accuracy = figure.subplots(1, 2)
    losses.plot(numbers, [e.train_loss for e in history], label="training")
    losses.plot(numbers, [e.validation_loss for e in history], label="validation")
    losses.set(title="Loss", xlabel="epoch", ylabel="binary cross-entropy")
    accuracy.plot(numbers, [e.validation_accuracy for e in history], color="C1", label="validation")
    accuracy.set(title="Accuracy", xlabel="epoch", ylabel="fraction correct")
    for axes in (losses, accuracy):
        axes.axvline(kept, color="grey", linestyle="--", label=f"kept: epoch {kept}")
        axes.grid(alpha=0.3)
        axes.legend()
    content = io.BytesIO()
    # No Software entry: the picture is then the same under every patch release.
    figure.savefig(content, format="png", dpi=120, metadata={"Software": None})
    return content.getvalue()
