"""GRID_SEARCH and RANDOM_SEARCH over the search space."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from localgcp.tuning.exact import grid_point, grid_size, random_point
from localgcp.tuning.parameters import Parameter, arguments, search_space, to_text


def space(*parameters: dict[str, Any]) -> list[Parameter]:
    return search_space({"parameters": list(parameters)})


def double(low: float, high: float, scale: str = "", name: str = "x") -> dict[str, Any]:
    made = {"parameterId": name, "doubleValueSpec": {"minValue": low, "maxValue": high}}
    return {**made, "scaleType": scale} if scale else made


def integer(low: int, high: int, name: str = "n", **more: Any) -> dict[str, Any]:
    # The JSON form of an int64 is text.
    spec = {"minValue": str(low), "maxValue": str(high)}
    return {"parameterId": name, "integerValueSpec": spec, **more}


def categorical(*values: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return {"parameterId": name, "categoricalValueSpec": {"values": list(values)}, **more}


def discrete(*values: float, name: str = "d", **more: Any) -> dict[str, Any]:
    return {"parameterId": name, "discreteValueSpec": {"values": list(values)}, **more}


def when(field: str, values: list[Any], parameter: dict[str, Any]) -> dict[str, Any]:
    return {field: {"values": values}, "parameterSpec": parameter}


def test_a_grid_has_every_combination_once_and_the_last_parameter_changes_fastest() -> None:
    found = space(integer(-1, 1), categorical("a", "b"), discrete(0.5, 2))
    points = [tuple(grid_point(found, n).values()) for n in range(grid_size(found))]
    assert points == list(itertools.product([-1, 0, 1], ["a", "b"], [0.5, 2]))
    with pytest.raises(IndexError):
        grid_point(found, 12)


def test_a_grid_has_conditional_parameters_only_below_the_values_that_ask_for_them() -> None:
    deep = when("parentCategoricalValues", ["adam"], discrete(0.1, 0.2, name="beta"))
    kind = categorical("sgd", "adam", "none", name="kind", conditionalParameterSpecs=[deep])
    parent = integer(1, 3, conditionalParameterSpecs=[when("parentIntValues", ["2"], kind)])
    points = [grid_point(space(parent), n) for n in range(grid_size(space(parent)))]
    assert points == [
        {"n": 1},
        {"n": 2, "kind": "sgd"},
        {"n": 2, "kind": "adam", "beta": 0.1},
        {"n": 2, "kind": "adam", "beta": 0.2},
        {"n": 2, "kind": "none"},
        {"n": 3},
    ]


def test_a_grid_over_all_integers_is_counted_without_listing_them() -> None:
    child = when("parentIntValues", ["0"], categorical("a", "b"))
    found = space(integer(-(2**63), 2**63 - 1, conditionalParameterSpecs=[child]))
    assert grid_size(found) == 2**64 + 1
    assert grid_point(found, 2**63) == {"n": 0, "c": "a"}
    assert grid_point(found, 2**64) == {"n": 2**63 - 1}


@pytest.mark.parametrize("scale", ["", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE"])
def test_random_values_stay_in_their_bounds_and_follow_their_seed(scale: str) -> None:
    found = space(double(1e-4, 1, scale), integer(1, 3, scaleType=scale), categorical("a", "b"))
    points = [random_point(found, str(seed)) for seed in range(300)]
    assert points[7] == random_point(found, "7")
    assert all(1e-4 <= float(point["x"]) <= 1 for point in points)
    assert {point["n"] for point in points} == {1, 2, 3}
    assert {point["c"] for point in points} == {"a", "b"}


def test_scales_put_half_of_the_values_where_they_say() -> None:
    """Half of the points lie below the middle of the scale, give or take."""
    middles = {
        "UNIT_LINEAR_SCALE": 5000.5,
        "UNIT_LOG_SCALE": 100,
        "UNIT_REVERSE_LOG_SCALE": 10001 - 100,
    }
    for scale, middle in middles.items():
        for parameter in (double(1, 10000, scale), integer(1, 10000, "x", scaleType=scale)):
            found = space(parameter)
            below = sum(float(random_point(found, str(n))["x"]) < middle for n in range(2000))
            assert 900 < below < 1100, parameter


def test_values_become_two_words_each_and_whole_numbers_have_no_point() -> None:
    values = {"learning-rate": 0.001, "n_units": 64.0, "kind": "a b", "big": 10**18, "e": 1e-7}
    assert arguments(values) == [
        *("--learning-rate", "0.001", "--n_units", "64", "--kind", "a b"),
        *("--big", "1000000000000000000", "--e", "1e-07"),
    ]
    assert math.isclose(float(to_text(1e300)), 1e300)
