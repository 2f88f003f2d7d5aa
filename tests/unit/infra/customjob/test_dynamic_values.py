"""What the dynamic providers of this package share."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.dynamic_values import has_unknown
from vertex_training.pulumi_internals import Unknown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Unknown(), True),
        ({"request": {"jobSpec": Unknown()}}, True),
        ({"projects": ["acme-ml-dev", Unknown()]}, True),
        ([{"name": "a"}, {"name": [Unknown()]}], True),
        ({"request": {"jobSpec": {}}, "projects": ["acme-ml-dev"]}, False),
        ("Unknown", False),
        (None, False),
        ([], False),
    ],
)
def test_a_value_is_known_if_all_of_it_is(value: Any, expected: bool) -> None:
    assert has_unknown(value) is expected
