"""Read access to a studySpec, and rules about its metrics and parameters.

All values have the right type.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
#: Type of a parent parameter -> field of a condition.
CONDITIONS: Final = {
    "INTEGER": "parentIntValues",
    "CATEGORICAL": "parentCategoricalValues",
    "DISCRETE": "parentDiscreteValues",
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
        # JSON may also write an int64 as text.
        return float(self.values.get("minValue", 0)), float(self.values.get("maxValue", 0))

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


MOST_VALUES: Final = 1000
LOG_SCALES: Final = ("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
RANGES: Final = ("DOUBLE", "INTEGER")
DISCRETE_PARENT: Final = "make the parent DISCRETE, not DOUBLE"


@rule("study-parameters", STUDY_TYPES)
def study_parameters(job: Job) -> Findings:
    """Check that a studySpec has at least one parameter."""
    if job.tuning and "studySpec" in job.tuning and not study_of(job).get("parameters"):
        hint = "write parameters: [{parameterId: lr, doubleValueSpec: {minValue: 0, maxValue: 1}}]"
        yield Finding(STUDY, "studySpec has no parameters", "", hint, missing="parameters")


@rule("parameter-id", STUDY_TYPES)
def parameter_id(job: Job) -> Findings:
    """Check that every parameter has a unique id without white space."""
    siblings = dict[str, Path]()
    for parameter in parameters_of(job):
        path, id_ = (*parameter.path, "parameterId"), parameter.id
        if not id_:
            hint = "add parameterId; the program receives the value as the option --ID"
            what = "the parameter has no parameterId"
            yield Finding(parameter.path, what, "", hint, missing="parameterId")
            continue
        if SPACE.search(id_):
            yield Finding(path, "a parameter id must not have white space", id_, "write _ instead")
        family = parameter.path[:-2] if parameter.path[-1] == "parameterSpec" else ()
        if id_ in siblings and (not family or siblings[id_] != family):
            yield Finding(path, "another parameter has the same id", id_, "rename this parameter")
        siblings.setdefault(id_, family)


@rule("parameter-id-argument", TUNING_GUIDE, "warning", of=parameters_of)
def parameter_id_argument(parameter: Parameter) -> Findings:
    """Check that a parameter id has no '=' and no leading dash: a program gets the option --ID."""
    if parameter.id.startswith("-") or "=" in parameter.id:
        path, bare = (*parameter.path, "parameterId"), parameter.id.strip("-=")
        what = "a parameter id must not begin with - or contain ="
        yield Finding(path, what, parameter.id, f"write {bare or 'a name'}")


@rule("parameter-values", STUDY_TYPES, of=parameters_of)
def parameter_values(parameter: Parameter) -> Findings:
    """Check that every parameter has a range or a list of values."""
    if not parameter.field:
        hint = f"add one of {', '.join(VALUE_SPECS)}"
        what = "the parameter has no range or values"
        yield Finding(parameter.path, what, "", hint, missing="doubleValueSpec")
    elif parameter.type not in RANGES and not parameter.options:
        path, hint = parameter.values_path, "write values: [first, second]"
        yield Finding(path, "the list of values is empty", "", hint, missing="values")


@rule("parameter-range", STUDY_TYPES, of=parameters_of)
def parameter_range(parameter: Parameter) -> Findings:
    """Check that a range has minValue and maxValue, and maxValue is not below minValue."""
    if parameter.type not in RANGES:
        return
    missing = [name for name in ("minValue", "maxValue") if name not in parameter.values]
    # A warning, because the request is valid: a missing bound equals 0.
    for name in missing:
        path, what = parameter.values_path, f"{name} is missing, and defaults to 0"
        yield Finding(path, what, "", f"write {name}: 0", name, "warning")
    lowest, highest = parameter.bounds
    place = (*parameter.values_path, "maxValue")
    if highest < lowest:
        what, hint = f"maxValue is below minValue ({shown(lowest)})", "swap minValue and maxValue"
        path = place if "maxValue" not in missing else place[:-1]
        yield Finding(path, what, shown(highest), hint)
    elif highest == lowest and len(missing) < 2:
        # A warning, because the request is valid: a range of one value tunes nothing.
        what = "minValue equals maxValue, so the parameter is not tuned"
        hint = "remove the parameter, and pass the value in args"
        yield Finding(parameter.values_path, what, shown(lowest), hint, level="warning")


@rule("parameter-scale", STUDY_TYPES, of=parameters_of)
def parameter_scale(parameter: Parameter) -> Findings:
    """Check that log scales have only values above 0; warn about scales of CATEGORICAL."""
    scale = parameter.spec.get("scaleType", "SCALE_TYPE_UNSPECIFIED")
    path = (*parameter.path, "scaleType")
    if parameter.type == "CATEGORICAL" and scale != "SCALE_TYPE_UNSPECIFIED":
        what = "a CATEGORICAL parameter has no scale"
        yield Finding(path, what, scale, "remove scaleType", level="warning")
    if scale not in LOG_SCALES or parameter.type == "CATEGORICAL":
        return
    values = parameter.bounds if parameter.type in RANGES else parameter.options
    wrong = [float(value) for value in values if float(value) <= 0]
    if wrong:
        hint = "use only values above 0, or write scaleType: UNIT_LINEAR_SCALE"
        what = f"{scale} requires values above 0"
        yield Finding(parameter.values_path, what, shown(min(wrong)), hint)


@rule("parameter-discrete", STUDY_TYPES, of=parameters_of)
def parameter_discrete(parameter: Parameter) -> Findings:
    """Check that a DISCRETE parameter has up to 1,000 increasing values, 1e-10 apart."""
    if parameter.type != "DISCRETE":
        return
    path, options = (*parameter.values_path, "values"), parameter.options
    if len(options) > MOST_VALUES:
        hint = "use a range instead: doubleValueSpec or integerValueSpec"
        what = f"a DISCRETE parameter can have at most {MOST_VALUES:,} values"
        yield Finding(path, what, str(len(options)), hint)
    for index, (one, other) in enumerate(pairwise(options), start=1):
        if other - one < EPSILON:
            what = f"this value must be larger than the previous value ({shown(one)})"
            hint = "sort the values, and remove duplicates"
            yield Finding((*path, index), what, shown(other), hint)
            break


@rule("parameter-categories", STUDY_TYPES, "warning", of=parameters_of)
def parameter_categories(parameter: Parameter) -> Findings:
    """Check that a list of values has at least two values, and no category twice."""
    if parameter.type not in ("CATEGORICAL", "DISCRETE"):
        return
    path, options = (*parameter.values_path, "values"), parameter.options
    if len(options) == 1:
        what = "a parameter with only one value is not tuned"
        hint = "remove the parameter, and pass the value in args"
        yield Finding(path, what, str(options[0]), hint)
    twice = [value for index, value in enumerate(options) if value in options[:index]]
    if twice and parameter.type == "CATEGORICAL":
        what = "this category occurs twice"
        yield Finding(path, what, str(twice[0]), "remove the duplicate")


@rule("vizier-only", STUDY_TYPES)
def vizier_only(job: Job) -> Findings:
    """Check that a tuning job sets no defaultValue or observationNoise: only Vizier has them."""
    hint = "remove the field, which according to Google's client only Vertex AI Vizier supports"
    if "observationNoise" in study_of(job):
        value = study_of(job)["observationNoise"]
        what = "tuning jobs do not support observationNoise"
        yield Finding((*STUDY, "observationNoise"), what, value, hint)
    for parameter in parameters_of(job):
        if "defaultValue" in parameter.values:
            path = (*parameter.values_path, "defaultValue")
            value = str(parameter.values["defaultValue"])
            yield Finding(path, "tuning jobs do not support defaultValue", value, hint)


@rule("parameter-condition", STUDY_TYPES, of=parameters_of)
def parameter_condition(parent: Parameter) -> Findings:
    """Check that a conditional parameter has a spec, and possible values of its parent."""
    claimed = dict[str, list[Any]]()
    for path, child in parent.children():
        spec = child.get("parameterSpec")
        if spec is None:
            hint = "add parameterSpec, with parameterId and values"
            what = "the conditional parameter has no parameterSpec"
            yield Finding(path, what, "", hint, missing="parameterSpec")
        field = next((name for name in CONDITIONS.values() if name in child), "")
        if not field:
            field = CONDITIONS.get(parent.type, "")
            hint = f"add {field}: {{values: […]}}" if field else DISCRETE_PARENT
            what = "the conditional parameter has no condition"
            yield Finding(path, what, "", hint, missing=field or "parentIntValues")
            continue
        yield from _wrong_condition((*path, field), field, child[field], parent)
        values = child[field].get("values", [])
        id_ = (spec or {}).get("parameterId", "")
        before = claimed.setdefault(id_, [])
        if any(_is_among(value, before) for value in values):
            what = "another condition of this parameter id has the same value"
            yield Finding((*path, field), what, id_, "use different values in each condition")
        before.extend(values)


def _wrong_condition(
    path: Path, field: str, condition: dict[str, Any], parent: Parameter
) -> Findings:
    fitting = CONDITIONS.get(parent.type)
    if parent.type and field != fitting:
        hint = f"write {fitting}" if fitting else DISCRETE_PARENT
        what = f"the condition does not fit the type {parent.type} of its parent '{parent.id}'"
        yield Finding(path, what, field, hint)
        return
    values = condition.get("values", [])
    if not values:
        hint = "write values of the parent"
        yield Finding(path, "the condition has no values", "", hint, missing="values")
    known = parent.type in RANGES or parent.options
    lowest, highest = parent.bounds
    for index, value in enumerate(values if known else ()):
        is_possible = _is_among(value, parent.options)
        if parent.type == "INTEGER":
            is_possible = lowest <= float(value) <= highest
        if not is_possible:
            what = f"the parent '{parent.id}' cannot have this value"
            hint = "write a value from {} to {}".format(*map(shown, parent.bounds))
            if parent.type != "INTEGER":
                hint = f"write one of {', '.join(map(str, parent.options[:10]))}"
            yield Finding((*path, "values", index), what, str(value), hint)


def _is_among(value: Any, options: Sequence[Any]) -> bool:
    if isinstance(value, str):
        return value in options
    return any(abs(float(value) - float(option)) <= EPSILON for option in options)
