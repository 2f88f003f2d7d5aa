"""A studySpec as the rules read it, and the rules of its metrics.

Values of the wrong type never come here: reading the file has reported them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
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
        """Path of its values."""
        return (*self.path, self.field)

    @property
    def values(self) -> dict[str, Any]:
        """The content of :attr:`field`: a range or a list of values."""
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
        """Number of its possible values; 0 if they cannot be counted."""
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


SPACE: Final = re.compile(r"\s")


@rule("study-metrics", STUDY_TYPES)
def study_metrics(job: Job) -> Iterator[Finding]:
    """A tuning job has a studySpec with at least one metric."""
    if job.tuning is None:
        return
    hint = "metrics: [{metricId: accuracy, goal: MAXIMIZE}]"
    if "studySpec" not in job.tuning:
        yield Finding((), "studySpec is missing", "", "it has metrics and parameters", "studySpec")
    elif not study_of(job).get("metrics"):
        yield Finding(STUDY, "has no metrics", "", hint, missing="metrics")


@rule("metric-id", STUDY_TYPES)
def metric_id(job: Job) -> Iterator[Finding]:
    """Every metric has an id, without white space, and no other metric has the same."""
    seen = set[str]()
    for path, metric in metrics_of(job):
        given = metric.get("metricId", "")
        if not given:
            hint = "metricId is the name under which the code reports its value"
            yield Finding(path, "has no metricId", "", hint, missing="metricId")
        elif SPACE.search(given):
            yield Finding((*path, "metricId"), "has white space", given, "use _ in its place")
        elif given in seen:
            yield Finding((*path, "metricId"), "another metric has this id", given, "rename one")
        seen.add(given)


@rule("metric-goal", STUDY_TYPES)
def metric_goal(job: Job) -> Iterator[Finding]:
    """Every metric has a goal, MAXIMIZE or MINIMIZE.

    GOAL_TYPE_UNSPECIFIED is documented to mean MAXIMIZE, so it is a warning.
    """
    hint = "write MAXIMIZE or MINIMIZE: without one a loss would be maximized"
    for path, metric in metrics_of(job):
        if "goal" not in metric:
            yield Finding(path, "has no goal", "", hint, missing="goal")
        elif metric["goal"] == "GOAL_TYPE_UNSPECIFIED":
            what = "is taken as MAXIMIZE"
            yield Finding((*path, "goal"), what, metric["goal"], hint, level="warning")


@rule("metric-safety", STUDY_TYPES)
def metric_safety(job: Job) -> Iterator[Finding]:
    """Beside metrics with a safetyConfig there is one to optimize; fractions are 0 to 1."""
    metrics = list(metrics_of(job))
    if metrics and all("safetyConfig" in metric for _, metric in metrics):
        what, hint = "no metric is left to optimize", "add one without safetyConfig"
        yield Finding((*STUDY, "metrics"), what, "", hint)
    for path, metric in metrics:
        share = metric.get("safetyConfig", {}).get("desiredMinSafeTrialsFraction")
        if share is not None and not 0 <= share <= 1:
            there = (*path, "safetyConfig", "desiredMinSafeTrialsFraction")
            yield Finding(there, "is no share of the trials", str(share), "0.0 to 1.0")
