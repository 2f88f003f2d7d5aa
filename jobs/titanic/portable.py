"""``model.json``: the trained network for predictions with only numpy.

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
    "age": ((int, float), "a number, or null if unknown"),
    "title": (str, "text"),
    "party_size": (int, "a whole number"),
}


@dataclass(frozen=True)
class PortableModel:
    """Multilayer perceptron with weights (outputs x inputs) and biases of each layer."""

    layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
    preprocessing: Preprocessing

    def probabilities(self, columns: Columns) -> NDArray[np.float32]:
        """Return the probabilities of survival, equal to ``model.Classifier`` to six decimals."""
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
        raise ValueError(
            f"model.json has format {saved.get('format')!r}, but this code reads {FORMAT}"
        )
    layers = [
        (np.array(weights, np.float32), np.array(biases, np.float32))
        for weights, biases in saved["layers"]
    ]
    return PortableModel(layers, Preprocessing(**saved["preprocessing"]))


def parse(passenger: Any) -> dict[str, Any]:
    """Validate and convert a passenger of a request; an unknown age becomes NaN.

    Raises:
        ValueError: it is no passenger as FIELDS describe one.
    """
    if not isinstance(passenger, dict):
        raise ValueError(f"the passenger must be an object with {', '.join(FIELDS)}")
    if unknown := passenger.keys() - FIELDS.keys():
        raise ValueError(f"has {min(unknown)!r}, which is not one of {', '.join(FIELDS)}")
    result = {"age": math.nan} | {
        name: v for name, v in passenger.items() if (name, v) != ("age", None)
    }
    for name, (kind, called) in FIELDS.items():
        value = result.get(name)
        if kind is int and isinstance(value, float) and value.is_integer():
            result[name] = value = int(value)  # gRPC has no other numbers
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{name} is {json.dumps(value)}, not {called}")
    return result


def columns(passengers: Sequence[Mapping[str, Any]]) -> Columns:
    """Return parsed passengers by column (see ``titanic.data``)."""
    return {name: np.array([passenger[name] for passenger in passengers]) for name in FIELDS}


def passengers(columns: Columns) -> list[dict[str, Any]]:
    """Return the passengers of a split in the form of requests."""
    rows = zip(*(columns[name].tolist() for name in FIELDS), strict=True)
    named = [dict(zip(FIELDS, row, strict=True)) for row in rows]
    return [
        passenger | {"age": None if math.isnan(passenger["age"]) else passenger["age"]}
        for passenger in named
    ]


def predictions_jsonl(columns: Columns, probabilities: Sequence[float]) -> bytes:
    """Return ``predictions.jsonl``: the model's predictions, to compare with an endpoint's."""
    rows = zip(passengers(columns), probabilities, strict=True)
    return "".join(f"{json.dumps({'instance': i, 'prediction': p})}\n" for i, p in rows).encode()
