"""GRID_SEARCH and RANDOM_SEARCH (pure)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from localgcp.tuning.parameters import LOG, REVERSE_LOG, Kind, Parameter, choose
from localgcp.tuning.records import Value


def random_point(space: Sequence[Parameter], seed: str) -> dict[str, Value]:
    """Values by chance, each parameter alike on its scale; the same seed gives the same values."""
    chance = random.Random(seed)
    return choose(space, lambda parameter: _random_value(parameter, chance))


def _random_value(parameter: Parameter, chance: random.Random) -> Value:
    if parameter.choices:
        return chance.choice(parameter.choices)
    low, high = parameter.low, parameter.high
    if parameter.kind is Kind.INTEGER and parameter.scale not in (LOG, REVERSE_LOG):
        return chance.randint(int(low), int(high))
    value = chance.uniform(low, high)
    if parameter.scale in (LOG, REVERSE_LOG):
        value = math.exp(chance.uniform(math.log(low), math.log(high)))
        if parameter.scale == REVERSE_LOG:
            value = low + high - value
    value = min(max(value, low), high)
    return round(value) if parameter.kind is Kind.INTEGER else value


def grid_size(space: Sequence[Parameter]) -> int:
    """The number of points of a grid."""
    return math.prod(_size(parameter) for parameter in space)


def grid_point(space: Sequence[Parameter], number: int) -> dict[str, Value]:
    """Point ``number`` of the grid, from 0 on; the last parameter changes fastest.

    Raises IndexError after the last one.
    """
    if not 0 <= number < grid_size(space):
        raise IndexError(number)
    found: list[dict[str, Value]] = []
    for parameter in reversed(space):
        number, below = divmod(number, _size(parameter))
        found.append(_point(parameter, below))
    return {name: value for each in reversed(found) for name, value in each.items()}


def _count(parameter: Parameter) -> int:
    """Values of the parameter itself."""
    return len(parameter.choices) or int(parameter.high) - int(parameter.low) + 1


def _value(parameter: Parameter, place: int) -> Value:
    return parameter.choices[place] if parameter.choices else int(parameter.low) + place


def _places(parameter: Parameter) -> dict[int, list[Parameter]]:
    """Places of the values that ask for further parameters, in order, and these parameters."""
    found: dict[int, list[Parameter]] = {}
    for child in parameter.children:
        for value in child.parent_values:
            choices = parameter.choices
            place = choices.index(value) if choices else int(value) - int(parameter.low)
            found.setdefault(place, []).append(child.parameter)
    return dict(sorted(found.items()))


def _size(parameter: Parameter) -> int:
    """Points of a parameter and of those that depend on it."""
    return _count(parameter) + sum(grid_size(asked) - 1 for asked in _places(parameter).values())


def _point(parameter: Parameter, number: int) -> dict[str, Value]:
    begin = 0
    for place, asked in _places(parameter).items():
        if number < place - begin:
            break
        number -= place - begin
        if number < grid_size(asked):
            return {parameter.id: _value(parameter, place), **grid_point(asked, number)}
        number -= grid_size(asked)
        begin = place + 1
    return {parameter.id: _value(parameter, begin + number)}
