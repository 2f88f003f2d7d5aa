"""Rules about parameters of tuning jobs: ids, ranges, values, scales and conditions."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding, Findings, rule
from vertex_training.customjob.rules.study import (
    CONDITIONS,
    EPSILON,
    STUDY,
    STUDY_TYPES,
    TUNING_GUIDE,
    VALUE_SPECS,
    Parameter,
    number,
    parameters_of,
    shown,
    study_of,
)
from vertex_training.errors import Path

SPACE: Final = re.compile(r"\s")
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
    wrong = [number(value) for value in values if number(value) <= 0]
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
        field = next((name for name in CONDITIONS if name in child), "")
        if not field:
            field = next((name for name, type_ in CONDITIONS.items() if type_ == parent.type), "")
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
    if parent.type and CONDITIONS[field] != parent.type:
        fitting = {type_: name for name, type_ in CONDITIONS.items()}.get(parent.type)
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
            is_possible = lowest <= number(value) <= highest
        if not is_possible:
            what = f"the parent '{parent.id}' cannot have this value"
            hint = "write a value from {} to {}".format(*map(shown, parent.bounds))
            if parent.type != "INTEGER":
                hint = f"write one of {', '.join(map(str, parent.options[:10]))}"
            yield Finding((*path, "values", index), what, str(value), hint)


def _is_among(value: Any, options: Sequence[Any]) -> bool:
    if isinstance(value, str):
        return value in options
    return any(abs(number(value) - number(option)) <= EPSILON for option in options)
