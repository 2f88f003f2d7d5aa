"""Read access to a studySpec, and rules about its metrics. All values have the right type."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Path

STUDY: Final[Path] = ("studySpec",)
#: Sources of the rules.
STUDY_TYPES: Final = TYPES + "study.py"
TUNING_TYPES: Final = TYPES + "hyperparameter_tuning_job.py"
TUNING_GUIDE: Final = GUIDES + "training/using-hyperparameter-tuning"
#: Field with a parameter's values -> type of the parameter.
VALUE_SPECS: Final = {
    "doubleValueSpec": "DOUBLE",
    "integerValueSpec": "INTEGER",
    "categoricalValueSpec": "CATEGORICAL",
    "discreteValueSpec": "DISCRETE",
}
#: Field of a condition -> type of its parent parameter.
CONDITIONS: Final = {
    "parentIntValues": "INTEGER",
    "parentCategoricalValues": "CATEGORICAL",
    "parentDiscreteValues": "DISCRETE",
}
#: Minimum difference of two values: study.py, DiscreteValueSpec and DiscreteValueCondition.
EPSILON: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a study, and the path of its ParameterSpec in the request."""

    path: Path
    spec: dict[str, Any]

    @property
    def id(self) -> str:
        return self.spec.get("parameterId", "")

    @property
    def field(self) -> str:
        """Return the name of the field that has the values; empty if missing."""
        return next((name for name in VALUE_SPECS if name in self.spec), "")

    @property
    def type(self) -> str:
        """Return DOUBLE, INTEGER, CATEGORICAL or DISCRETE; empty without values."""
        return VALUE_SPECS.get(self.field, "")

    @property
    def values_path(self) -> Path:
        return (*self.path, self.field)

    @property
    def values(self) -> dict[str, Any]:
        """Return the content of :attr:`field`: a range or a list of values."""
        return self.spec.get(self.field, {})

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the bounds of a range. A missing bound is 0, as in protobuf."""
        return number(self.values.get("minValue", 0)), number(self.values.get("maxValue", 0))

    @property
    def options(self) -> list[Any]:
        """Return the values of a CATEGORICAL or DISCRETE parameter."""
        return self.values.get("values", [])

    @property
    def points(self) -> int:
        """Return the number of possible values; 0 for an unlimited number."""
        if self.type == "INTEGER":
            lowest, highest = self.bounds
            return max(0, int(highest - lowest) + 1)
        return len(self.options)

    def children(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield path and content of each conditionalParameterSpec."""
        for index, condition in enumerate(self.spec.get("conditionalParameterSpecs", [])):
            yield (*self.path, "conditionalParameterSpecs", index), condition


def study_of(job: Job) -> dict[str, Any]:
    """Return the studySpec of a tuning job; empty for other jobs."""
    return (job.tuning or {}).get("studySpec", {})


def metrics_of(job: Job) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield path and content of each metric."""
    for index, metric in enumerate(study_of(job).get("metrics", [])):
        yield (*STUDY, "metrics", index), metric


def parameters_of(job: Job) -> Iterator[Parameter]:
    """Yield all parameters. A conditional parameter follows its parent."""
    for index, spec in enumerate(study_of(job).get("parameters", [])):
        yield from _with_children((*STUDY, "parameters", index), spec)


def _with_children(path: Path, spec: dict[str, Any]) -> Iterator[Parameter]:
    yield (parameter := Parameter(path, spec))
    for inner, condition in parameter.children():
        if "parameterSpec" in condition:
            yield from _with_children((*inner, "parameterSpec"), condition["parameterSpec"])


def number(value: float | str) -> float:
    """Convert a value to a number; JSON may also write an int64 as text."""
    return float(value)


def shown(value: float) -> str:
    """Return a number as short text: 3, 0.5 or 1e-05."""
    return f"{value:.10g}"


SPACE: Final = re.compile(r"\s")


@rule("study-metrics", STUDY_TYPES)
def study_metrics(job: Job) -> Findings:
    """Check that a tuning job has a studySpec with at least one metric."""
    if job.tuning is None:
        return
    hint = "metrics: [{metricId: accuracy, goal: MAXIMIZE}]"
    if "studySpec" not in job.tuning:
        study_hint = "add studySpec, with metrics and parameters"
        yield Finding((), "studySpec is missing", "", study_hint, "studySpec")
    elif not study_of(job).get("metrics"):
        yield Finding(STUDY, "studySpec has no metrics", "", f"write {hint}", missing="metrics")


@rule("metric-id", STUDY_TYPES)
def metric_id(job: Job) -> Findings:
    """Check that every metric has a unique id without white space."""
    seen = set[str]()
    for path, metric in metrics_of(job):
        id_ = metric.get("metricId", "")
        if not id_:
            hint = "add metricId, the name of the metric in the code"
            yield Finding(path, "the metric has no metricId", "", hint, missing="metricId")
        elif SPACE.search(id_):
            what = "a metric id must not have white space"
            yield Finding((*path, "metricId"), what, id_, "write _ instead")
        elif id_ in seen:
            what = "another metric has the same id"
            yield Finding((*path, "metricId"), what, id_, "rename this metric")
        seen.add(id_)


@rule("metric-goal", STUDY_TYPES, of=metrics_of)
def metric_goal(path: Path, metric: dict[str, Any]) -> Findings:
    """Check that every metric has a goal, MAXIMIZE or MINIMIZE."""
    hint = "write goal: MAXIMIZE or MINIMIZE; without a goal, a loss would be maximized"
    if "goal" not in metric:
        yield Finding(path, "the metric has no goal", "", hint, missing="goal")
    elif metric["goal"] == "GOAL_TYPE_UNSPECIFIED":
        # A warning, because GOAL_TYPE_UNSPECIFIED means MAXIMIZE according to the documentation.
        what = "an unspecified goal means MAXIMIZE"
        yield Finding((*path, "goal"), what, metric["goal"], hint, level="warning")


@rule("metric-safety", STUDY_TYPES)
def metric_safety(job: Job) -> Findings:
    """Check that at least one metric has no safetyConfig, and fractions are from 0 to 1."""
    metrics = list(metrics_of(job))
    if metrics and all("safetyConfig" in metric for _, metric in metrics):
        what = "all metrics have a safetyConfig, so the study has no metric to optimize"
        hint = "add a metric without safetyConfig"
        yield Finding((*STUDY, "metrics"), what, "", hint)
    for path, metric in metrics:
        share = metric.get("safetyConfig", {}).get("desiredMinSafeTrialsFraction")
        if share is not None and not 0 <= share <= 1:
            place = (*path, "safetyConfig", "desiredMinSafeTrialsFraction")
            what = "the fraction of trials must be from 0.0 to 1.0"
            yield Finding(place, what, str(share), "write a fraction such as 0.9")
