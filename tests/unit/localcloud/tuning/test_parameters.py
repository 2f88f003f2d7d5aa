"""The search space of a study as it was written, and values of it as arguments."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.tuning.parameters import (
    Child,
    Kind,
    Parameter,
    arguments,
    choose,
    parent_values,
    search_space,
    to_text,
)

LAYERS = {
    "parameterId": "layers",
    "integerValueSpec": {"maxValue": "3"},
    "conditionalParameterSpecs": [
        {
            "parentIntValues": {"values": ["2", "3"]},
            "parameterSpec": {
                "parameterId": "width",
                "discreteValueSpec": {"values": [64, 128.5]},
                "scaleType": "UNIT_LINEAR_SCALE",
            },
        }
    ],
}
RATE = {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1},
        "scaleType": "UNIT_LOG_SCALE"}  # fmt: skip
KIND = {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}}


def test_a_search_space_is_read_as_it_was_written() -> None:
    width = Parameter("width", Kind.DISCRETE, choices=(64, 128.5), scale="UNIT_LINEAR_SCALE")
    assert search_space({"parameters": [LAYERS, RATE, KIND]}) == [
        Parameter("layers", Kind.INTEGER, 0, 3, children=(Child((2, 3), width),)),
        Parameter("rate", Kind.DOUBLE, 0.1, 1.0, scale="UNIT_LOG_SCALE"),
        Parameter("kind", Kind.CATEGORICAL, choices=("a", "b")),
    ]
    assert search_space({}) == []


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


@pytest.mark.parametrize(
    ("layers", "wanted"),
    [
        (1, {"layers": 1, "rate": 0.5}),
        (2, {"layers": 2, "width": 64, "rate": 0.5}),
    ],
)
def test_a_conditional_parameter_is_chosen_where_its_parent_asks_for_it(
    layers: int, wanted: dict[str, Any]
) -> None:
    values = {"layers": layers, "width": 64, "rate": 0.5}
    found = choose(search_space({"parameters": [LAYERS, RATE]}), lambda each: values[each.id])
    assert list(found.items()) == list(wanted.items())


def test_values_are_arguments_and_a_whole_number_has_no_point() -> None:
    assert arguments({"a_b": 2.0, "c": "x y", "d": 0.25}) == [
        "--a_b", "2", "--c", "x y", "--d", "0.25",
    ]  # fmt: skip
    assert [to_text(each) for each in (3, -4.0, 1e-5, 2.0**53, 2.0**53 - 1, "5.0")] == [
        "3", "-4", "1e-05", "9007199254740992.0", "9007199254740991", "5.0",
    ]  # fmt: skip
