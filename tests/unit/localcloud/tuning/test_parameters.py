"""The search space of a study as it was written, and values of it as arguments."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.tuning.parameters import (
    parent_values,
)


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ({"parentIntValues": {"values": ["1", "2"]}}, (1, 2)),
        ({"parentDiscreteValues": {"values": [1.5, 2]}}, (1.5, 2)),
        ({"parentCategoricalValues": {"values": ["1"]}}, ("1",)),
        ({"parentIntValues": {}}, ()),
        ({}, ()),
    ],
)
def test_a_condition_names_values_of_its_parent(
    condition: dict[str, Any], values: tuple[Any, ...]
) -> None:
    assert parent_values(condition) == values
