"""Features: what is learned, and that it is learned on the training split alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from titanic.errors import JobError
from titanic.features import Preprocessing, fit, transform


def _columns(count: int = 24) -> dict[str, np.ndarray]:
    half = count // 2
    return {
        "passenger_class": np.array([1, 3] * half, dtype=np.int8),
        "sex": np.array(["female", "male"] * half),
        "age": np.array([20.0, 40.0] * (half - 1) + [np.nan, np.nan], dtype=np.float32),
        "title": np.array(["Mrs", "Mr"] * half),
        "party_size": np.array([1, 2] * half, dtype=np.int8),
    }


def test_an_unknown_age_becomes_the_training_median_of_the_title() -> None:
    fitted = fit(_columns())
    assert fitted.age_medians == {"Mr": 40.0, "Mrs": 20.0}
    ages = transform(_columns(), fitted)[:, fitted.feature_names.index("age")]
    assert ages[-2:].tolist() == ages[:2].tolist()


def test_scaling_is_that_of_the_training_split() -> None:
    fitted = fit(_columns())
    age = fitted.feature_names.index("age")
    assert transform(_columns(), fitted)[:, age].mean() == pytest.approx(0.0, abs=1e-6)
    older = _columns() | {"age": np.full(24, 50.0, dtype=np.float32)}
    assert transform(older, fitted)[:, age].tolist() == pytest.approx([2.0] * 24)


def test_a_value_not_seen_in_training_shares_the_input_other() -> None:
    fitted = fit(_columns())
    unseen = _columns() | {"title": np.array(["Jonkheer"] * 24)}
    inputs = transform(unseen, fitted)
    titles = [i for i, name in enumerate(fitted.feature_names) if name.startswith("title=")]
    assert [fitted.feature_names[i] for i in titles if inputs[0, i]] == ["title=other"]


def test_a_rare_title_gets_no_input_of_its_own() -> None:
    columns = _columns()
    columns["title"] = np.array([*columns["title"][:-1], "Capt"])
    assert fit(columns).categories["title"] == ["Mr", "Mrs"]


@pytest.mark.parametrize(
    ("size", "party"), [(1, "alone"), (2, "small"), (4, "small"), (5, "large")]
)
def test_party_size_becomes_alone_small_or_large(size: int, party: str) -> None:
    sizes = np.array([1] * 12 + [3] * 12 + [8] * 12, dtype=np.int8)
    fitted = fit(_columns(36) | {"party_size": sizes})
    inputs = transform(_columns(36) | {"party_size": np.full(36, size)}, fitted)
    assert inputs[:, fitted.feature_names.index(f"party={party}")].all()


def test_inputs_are_finite_and_named_one_by_one() -> None:
    fitted = fit(_columns())
    inputs = transform(_columns(), fitted)
    assert inputs.shape == (24, len(fitted.feature_names))
    assert inputs.dtype == np.float32
    assert np.isfinite(inputs).all()


def test_a_constant_age_does_not_divide_by_zero() -> None:
    columns = _columns() | {"age": np.full(24, 30.0, dtype=np.float32)}
    assert np.isfinite(transform(columns, fit(columns))).all()


def test_training_data_without_one_known_age_is_refused() -> None:
    with pytest.raises(JobError, match="no known age"):
        fit(_columns() | {"age": np.full(24, np.nan)})


def test_what_was_fitted_survives_a_round_trip_through_plain_values() -> None:
    fitted = fit(_columns())
    assert Preprocessing(**json.loads(json.dumps(fitted.to_dict()))) == fitted
