"""Training loop with mini-batches, and early stopping that restores the best weights."""

# torch comes with the training image; the development environment does not install it.
# pyright: reportMissingImports=false
from __future__ import annotations

import copy
import logging
import math
import os
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from titanic.errors import JobError
from titanic.model import SurvivalNet
from titanic.report import Epoch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a run. Patience is a number of epochs."""

    epochs: int
    learning_rate: float
    batch_size: int
    patience: int
    hidden: list[int]
    dropout: float
    weight_decay: float
    seed: int


@dataclass(frozen=True)
class Examples:
    """Inputs and labels of one split, on the training device."""

    features: Tensor
    labels: Tensor


def pick_device() -> torch.device:
    """Return the GPU if the machine has one, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_reproducible(seed: int) -> None:
    """Seed all generators, so that equal runs on equal machines give equal results."""
    # cuBLAS is deterministic only with this set, and reads it when CUDA starts.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    # Sums depend on how work is divided among threads; so small a network gains nothing by them.
    torch.set_num_threads(1)


def train(
    train_set: Examples, validation_set: Examples, params: Hyperparameters
) -> tuple[SurvivalNet, list[Epoch]]:
    """Train until the validation loss does not improve for `params.patience` epochs.

    Returns:
        The network with the weights of its best epoch, and every epoch's figures.

    Raises:
        JobError: the loss is no longer a number.
    """
    device = train_set.features.device
    net = SurvivalNet(train_set.features.shape[1], params.hidden, params.dropout).to(device)
    optimizer = torch.optim.AdamW(
        net.parameters(), lr=params.learning_rate, weight_decay=params.weight_decay
    )
    # Drawn on the CPU, so that batches are the same whatever the device.
    shuffle = torch.Generator().manual_seed(params.seed)
    history: list[Epoch] = []
    best, best_weights = math.inf, copy.deepcopy(net.state_dict())
    best_epoch = 0
    for number in range(1, params.epochs + 1):
        train_loss = _train_epoch(net, optimizer, train_set, params.batch_size, shuffle)
        loss, accuracy = evaluate(net, validation_set)
        _check_loss(number, train_loss, loss, params.learning_rate)
        history.append(Epoch(number, train_loss, loss, accuracy))
        if loss < best:
            best, best_epoch = loss, number
            best_weights = copy.deepcopy(net.state_dict())
        if number == 1 or number % 10 == 0:
            _log_epoch(history[-1])
        if number - best_epoch >= params.patience:
            log.info("early stop: no better validation loss for %d epochs", params.patience)
            break
    net.load_state_dict(best_weights)
    log.info("best epoch %d of %d, validation loss %.4f", best_epoch, len(history), best)
    return net, history


def evaluate(net: SurvivalNet, examples: Examples) -> tuple[float, float]:
    """Return mean loss (binary cross-entropy) and accuracy on `examples`."""
    net.eval()
    with torch.no_grad():
        logits = net(examples.features)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, examples.labels)
        accuracy = ((logits > 0) == (examples.labels > 0)).double().mean()
    return loss.item(), accuracy.item()


def _train_epoch(
    net: SurvivalNet,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    batch_size: int,
    shuffle: torch.Generator,
) -> float:
    net.train()
    size = len(examples.labels)
    total = 0.0
    for batch in torch.randperm(size, generator=shuffle).split(batch_size):
        rows = batch.to(examples.features.device)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(
            net(examples.features[rows]), examples.labels[rows]
        )
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / size


def _check_loss(number: int, train_loss: float, loss: float, learning_rate: float) -> None:
    if not (math.isfinite(train_loss) and math.isfinite(loss)):
        raise JobError(
            f"epoch {number}: the loss is not finite (training {train_loss}, validation {loss}). "
            f"Hint: lower --learning-rate (is {learning_rate:g})"
        )


def _log_epoch(epoch: Epoch) -> None:
    log.info(
        "epoch %d: training loss %.4f, validation loss %.4f, validation accuracy %.4f",
        epoch.number,
        epoch.train_loss,
        epoch.validation_loss,
        epoch.validation_accuracy,
    )
