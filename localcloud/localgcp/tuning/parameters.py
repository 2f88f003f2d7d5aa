"""The search space of a study, and its values as command-line arguments (pure).

Source: google-cloud-aiplatform 2.7.0, ``StudySpec.ParameterSpec``. A conditional parameter is part
of a trial only where its parent has one of the values it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from localgcp.tuning.records import Value

LOG: Final = "UNIT_LOG_SCALE"
REVERSE_LOG: Final = "UNIT_REVERSE_LOG_SCALE"


class Kind(StrEnum):
    """Types of parameters. The value is the name of the field with the specification."""

    DOUBLE = "doubleValueSpec"
    INTEGER = "integerValueSpec"
    CATEGORICAL = "categoricalValueSpec"
    DISCRETE = "discreteValueSpec"


@dataclass(frozen=True)
class Child:
    """A conditional parameter, and the parent's values that activate it."""

    parent_values: tuple[Value, ...]
    parameter: Parameter


@dataclass(frozen=True)
class Parameter:
    """One parameter of a study."""

    id: str
    kind: Kind
    low: float = 0
    high: float = 0
    """``low`` and ``high`` are the bounds of DOUBLE and INTEGER, both inclusive."""
    choices: tuple[Value, ...] = ()
    """The values of CATEGORICAL and DISCRETE."""
    scale: str = ""
    children: tuple[Child, ...] = ()


def search_space(study: Mapping[str, Any]) -> list[Parameter]:
    """Return the parameters of a checked ``studySpec`` in the API's JSON form."""
    return [_parameter(parameter) for parameter in study.get("parameters", [])]


def _parameter(spec: Mapping[str, Any]) -> Parameter:
    kind = next(candidate for candidate in Kind if candidate in spec)
    values = spec[kind]
    children = tuple(
        Child(parent_values(candidate), _parameter(candidate["parameterSpec"]))
        for candidate in spec.get("conditionalParameterSpecs", [])
    )
    number: Callable[[Any], float] = int if kind is Kind.INTEGER else float
    return Parameter(
        id=spec["parameterId"],
        kind=kind,
        # The JSON form leaves out a bound that is 0, and has integers as text.
        low=number(values.get("minValue", 0)),
        high=number(values.get("maxValue", 0)),
        choices=tuple(values.get("values", ())),
        scale=spec.get("scaleType", ""),
        children=children,
    )


def parent_values(condition: Mapping[str, Any]) -> tuple[Value, ...]:
    """Return the parent's values that activate a conditional parameter."""
    if values := condition.get("parentIntValues"):
        return tuple(int(value) for value in values.get("values", []))
    for key in ("parentDiscreteValues", "parentCategoricalValues"):
        if values := condition.get(key):
            return tuple(values.get("values", []))
    return ()


def choose(space: Sequence[Parameter], pick: Callable[[Parameter], Value]) -> dict[str, Value]:
    """Choose a value for each parameter and for the active conditional parameters."""
    choices: dict[str, Value] = {}
    for parameter in space:
        value = choices[parameter.id] = pick(parameter)
        asked = [child.parameter for child in parameter.children if value in child.parent_values]
        choices |= choose(asked, pick)
    return choices


def arguments(values: Mapping[str, Value]) -> list[str]:
    """Return ``--name value`` for each parameter (doc:using-hyperparameter-tuning).

    A whole number has no ``.0``: code reads such values with ``int``.
    """
    return [word for name, value in values.items() for word in (f"--{name}", to_text(value))]


def to_text(value: Value) -> str:
    """Return a value as argument text."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
