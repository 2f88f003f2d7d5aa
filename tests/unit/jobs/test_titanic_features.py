"""Features: what is learned, and that it is learned on the training split alone."""

from __future__ import annotations

import numpy as np
import pytest
from titanic.errors import JobError
from titanic.features import fit


def _columns(count: int = 24) -> dict[str, np.ndarray]:
    half = count // 2
    return {
        "passenger_class": np.array([1, 3] * half, dtype=np.int8),
        "sex": np.array(["female", "male"] * half),
        "age": np.array([20.0, 40.0] * (half - 1) + [np.nan, np.nan], dtype=np.float32),
        "title": np.array(["Mrs", "Mr"] * half),
        "party_size": np.array([1, 2] * half, dtype=np.int8),
    }


def test_training_data_without_one_known_age_is_refused() -> None:
    with pytest.raises(JobError, match="no known age"):
        fit(_columns() | {"age": np.full(24, np.nan)})
