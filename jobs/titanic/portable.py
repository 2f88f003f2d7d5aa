"""``model.json``: the trained network as numbers, which predicts with numpy alone.

A serving image without PyTorch is a tenth as large, and starts in a second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from titanic.features import Columns, Preprocessing, transform

FORMAT = 1
#: What a passenger has in a request: the name of a column, its type, and how a person calls that.
FIELDS = {
    "passenger_class": (int, "a whole number"),
    "sex": (str, "text"),
    "age": ((int, float), "a number, or null where it is not known"),
    "title": (str, "text"),
    "party_size": (int, "a whole number"),
}


@dataclass(frozen=True)
class PortableModel:
    """A multilayer perceptron: weights (outputs x inputs) and biases of each layer."""

    layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
    preprocessing: Preprocessing

    def probabilities(self, columns: Columns) -> NDArray[np.float32]:
        """Return the probability of surviving; agrees with ``model.Classifier`` to six decimals."""
        values = transform(columns, self.preprocessing)
        for index, (weights, biases) in enumerate(self.layers):
            # All layers but the first take what the one before has activated: ReLU.
            values = (np.maximum(values, 0) if index else values) @ weights.T + biases
        return (1 / (1 + np.exp(-values[:, 0]))).astype(np.float32)

    def dump(self) -> bytes:
        """Return the content of ``model.json``."""
        layers = [[weights.tolist(), biases.tolist()] for weights, biases in self.layers]
        document = {
            "format": FORMAT, "layers": layers, "preprocessing": self.preprocessing.to_dict(),
        }  # fmt: skip
        return (json.dumps(document) + "\n").encode()


def load(content: bytes) -> PortableModel:
    """Rebuild the model from the content of ``model.json``.

    Raises:
        ValueError: the file was written in another format.
    """
    saved = json.loads(content)
    if saved.get("format") != FORMAT:
        raise ValueError(f"model.json has format {saved.get('format')!r}, this code reads {FORMAT}")
    layers = [
        (np.array(weights, np.float32), np.array(biases, np.float32))
        for weights, biases in saved["layers"]
    ]
    return PortableModel(layers, Preprocessing(**saved["preprocessing"]))


def parse(passenger: Any) -> dict[str, Any]:
    """Return a passenger of a request; an age that is not known becomes NaN.

    Raises:
        ValueError: it is no passenger as FIELDS describe one.
    """
    if not isinstance(passenger, dict):
        raise ValueError(f"is no object with {', '.join(FIELDS)}")
    if unknown := passenger.keys() - FIELDS.keys():
        raise ValueError(f"has {min(unknown)!r}, which is none of {', '.join(FIELDS)}")
    found = {"age": math.nan} | {
        name: v for name, v in passenger.items() if (name, v) != ("age", None)
    }
    for name, (kind, called) in FIELDS.items():
        value = found.get(name)
        if kind is int and isinstance(value, float) and value.is_integer():
            found[name] = value = int(value)  # gRPC has no other numbers
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{name} is {json.dumps(value)}, not {called}")
    return found


def columns(passengers: Sequence[Mapping[str, Any]]) -> Columns:
    """Return parsed passengers column by column, as ``titanic.data`` describes them."""
    return {name: np.array([each[name] for each in passengers]) for name in FIELDS}


def passengers(columns: Columns) -> list[dict[str, Any]]:
    """Return the passengers of a split, as a request has them."""
    rows = zip(*(columns[name].tolist() for name in FIELDS), strict=True)
    named = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    return [each | {"age": None if math.isnan(each["age"]) else each["age"]} for each in named]


def predictions_jsonl(columns: Columns, probabilities: Sequence[float]) -> bytes:
    """Return ``predictions.jsonl``: the script's own predictions, to hold an endpoint's against."""
    rows = zip(passengers(columns), probabilities, strict=True)
    return "".join(f"{json.dumps({'instance': i, 'prediction': p})}\n" for i, p in rows).encode()
