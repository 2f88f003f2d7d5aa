"""Conversion of raw columns to inputs of the network, fitted on the training split.

Category lists, medians, mean and deviation come from the training split alone, so that validation
and test stay unseen. They travel inside ``model.pt``: a model without them is of no use.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from titanic.errors import JobError

Columns = dict[str, NDArray]

CATEGORICAL = ("passenger_class", "sex", "title", "party")
OTHER = "other"
# A title borne by fewer passengers (Jonkheer, Capt, ...) teaches a network those passengers only.
RARE = 10
# Small parties fared better than passengers alone, large ones worse: sizes where that turns.
SMALL_PARTY, LARGE_PARTY = 2, 5


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing that was fitted on the training split.

    Attributes:
        categories: for each categorical column the values that have an input of their own; all
            other values share the input ``other``.
        age_medians: by category of title, in years; stands in for an age that is not known.
        age_median: the same over all passengers, for titles whose ages are all unknown.
        age_mean: mean age after imputation, in years.
        age_deviation: standard deviation after imputation, in years.
    """

    categories: dict[str, list[str]]
    age_medians: dict[str, float]
    age_median: float
    age_mean: float
    age_deviation: float

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the network's inputs, in order."""
        encoded = [
            f"{column}={value}"
            for column, values in self.categories.items()
            for value in (*values, OTHER)
        ]
        return [*encoded, "age", "age_missing"]

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain lists, numbers and text, for ``torch.load(weights_only=True)``."""
        return asdict(self)


def fit(columns: Columns) -> Preprocessing:
    """Fit categories, imputation and scaling on `columns`, which must be the training split.

    Raises:
        JobError: not one age is known.
    """
    categories = {name: _common_values(_text(columns, name)) for name in CATEGORICAL}
    titles = _categorise(_text(columns, "title"), categories["title"])
    age = columns["age"].astype(np.float64)
    known = ~np.isnan(age)
    if not known.any():
        raise JobError("the training split has no known age to impute from")
    median = float(np.median(age[known]))
    medians = {
        title: float(np.median(age[known & (titles == title)]))
        for title in (*categories["title"], OTHER)
        if (known & (titles == title)).any()
    }
    filled = _impute(age, titles, medians, median)
    # A constant age scales by 1: dividing by zero would poison every weight with NaN.
    deviation = float(filled.std()) or 1.0
    return Preprocessing(categories, medians, median, float(filled.mean()), deviation)


def transform(columns: Columns, fitted: Preprocessing) -> NDArray[np.float32]:
    """Return the inputs: one row per passenger, one column per name in ``feature_names``."""
    parts = []
    for name, values in fitted.categories.items():
        categorised = _categorise(_text(columns, name), values)
        parts.extend((categorised == value).astype(np.float32) for value in (*values, OTHER))
    age = columns["age"].astype(np.float64)
    titles = _categorise(_text(columns, "title"), fitted.categories["title"])
    filled = _impute(age, titles, fitted.age_medians, fitted.age_median)
    parts.append((filled - fitted.age_mean) / fitted.age_deviation)
    parts.append(np.isnan(age).astype(np.float32))
    return np.column_stack(parts).astype(np.float32)


def _text(columns: Columns, name: str) -> NDArray[np.str_]:
    """Return a categorical column as text; ``party`` is derived from other columns."""
    if name != "party":
        return columns[name].astype(str)
    size = columns["party_size"]
    return np.select([size < SMALL_PARTY, size < LARGE_PARTY], ["alone", "small"], "large")


def _common_values(column: NDArray[np.str_]) -> list[str]:
    counts = Counter(column.tolist())
    return sorted(value for value, count in counts.items() if count >= RARE)


def _categorise(column: NDArray[np.str_], values: list[str]) -> NDArray[np.str_]:
    return np.where(np.isin(column, values), column, OTHER)


def _impute(
    age: NDArray[np.float64], titles: NDArray, medians: dict[str, float], median: float
) -> NDArray[np.float64]:
    typical = np.array([medians.get(title, median) for title in titles.tolist()])
    return np.where(np.isnan(age), typical, age)
