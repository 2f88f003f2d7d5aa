"""A studySpec as the rules read it: its metrics, and its parameters with those that depend on one.

Values of the wrong type never come here: reading the file has reported them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES
from vertex_training.errors import Path

STUDY: Final[Path] = ("studySpec",)
#: Sources of the rules.
STUDY_TYPES: Final = TYPES + "study.py"
TUNING_TYPES: Final = TYPES + "hyperparameter_tuning_job.py"
TUNING_GUIDE: Final = GUIDES + "training/using-hyperparameter-tuning"
#: The field that has a parameter's values -> the type of the parameter.
VALUE_SPECS: Final = {
    "doubleValueSpec": "DOUBLE",
    "integerValueSpec": "INTEGER",
    "categoricalValueSpec": "CATEGORICAL",
    "discreteValueSpec": "DISCRETE",
}
#: The field that has a condition -> the type of parameter that it is about.
CONDITIONS: Final = {
    "parentIntValues": "INTEGER",
    "parentCategoricalValues": "CATEGORICAL",
    "parentDiscreteValues": "DISCRETE",
}
#: Two values that differ less are one: study.py, DiscreteValueSpec and DiscreteValueCondition.
EPSILON: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the study. ``path`` is where its ParameterSpec stands."""

    path: Path
    spec: dict[str, Any]

    @property
    def id(self) -> str:
        """Its parameterId, empty if it has none."""
        return self.spec.get("parameterId", "")

    @property
    def field(self) -> str:
        """The field with its values; empty if it has none."""
        return next((name for name in VALUE_SPECS if name in self.spec), "")

    @property
    def type(self) -> str:
        """DOUBLE, INTEGER, CATEGORICAL or DISCRETE; empty if it has no values."""
        return VALUE_SPECS.get(self.field, "")

    @property
    def values_path(self) -> Path:
        """Where its values stand."""
        return (*self.path, self.field)

    @property
    def values(self) -> dict[str, Any]:
        """What is below :attr:`field`: a range or a list of values."""
        return self.spec.get(self.field, {})

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of a range. A bound that is left out is 0: the message has no other way."""
        return number(self.values.get("minValue", 0)), number(self.values.get("maxValue", 0))

    @property
    def options(self) -> list[Any]:
        """The values of a CATEGORICAL or DISCRETE parameter."""
        return self.values.get("values", [])

    @property
    def points(self) -> int:
        """How many values it can have; 0 if they cannot be counted."""
        if self.type == "INTEGER":
            lowest, highest = self.bounds
            return max(0, int(highest - lowest) + 1)
        return len(self.options)

    def children(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Its conditionalParameterSpecs, each with its path."""
        for index, condition in enumerate(self.spec.get("conditionalParameterSpecs", [])):
            yield (*self.path, "conditionalParameterSpecs", index), condition


def study_of(job: Job) -> dict[str, Any]:
    """The studySpec of a tuning job; empty of other jobs."""
    return (job.tuning or {}).get("studySpec", {})


def metrics_of(job: Job) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The metrics, each with its path."""
    for index, metric in enumerate(study_of(job).get("metrics", [])):
        yield (*STUDY, "metrics", index), metric


def parameters_of(job: Job) -> Iterator[Parameter]:
    """The parameters, and after each those that depend on it."""
    for index, spec in enumerate(study_of(job).get("parameters", [])):
        yield from _with_children(Parameter((*STUDY, "parameters", index), spec))


def _with_children(parameter: Parameter) -> Iterator[Parameter]:
    yield parameter
    for path, condition in parameter.children():
        if "parameterSpec" in condition:
            yield from _with_children(
                Parameter((*path, "parameterSpec"), condition["parameterSpec"])
            )


def number(value: float | str) -> float:
    """A number; JSON writes int64 as text as well."""
    return float(value)


def shown(value: float) -> str:
    """A number as people write it: 3, 0.5, 1e-05.

    >>> shown(3.0), shown(0.5)
    ('3', '0.5')
    """
    return f"{value:.10g}"
