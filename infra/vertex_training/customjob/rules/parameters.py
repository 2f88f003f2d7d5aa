"""Rules for the parameters of a tuning job: ids, ranges, values, scales and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding, rule
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


@rule("study-parameters", STUDY_TYPES)
def study_parameters(job: Job) -> Iterator[Finding]:
    """A studySpec has at least one parameter."""
    if job.tuning and "studySpec" in job.tuning and not study_of(job).get("parameters"):
        hint = "parameters: [{parameterId: lr, doubleValueSpec: {minValue: 0.001, maxValue: 0.1}}]"
        yield Finding(STUDY, "has no parameters", "", hint, missing="parameters")


@rule("parameter-id", STUDY_TYPES)
def parameter_id(job: Job) -> Iterator[Finding]:
    """Every parameter has an id, without white space, and no other one has the same.

    Parameters of disjoint conditions of one parent may share one.
    """
    siblings = dict[str, Path]()
    for parameter in parameters_of(job):
        path, given = (*parameter.path, "parameterId"), parameter.id
        if not given:
            hint = "the program gets its value as --ID"
            yield Finding(parameter.path, "has no parameterId", "", hint, missing="parameterId")
            continue
        if SPACE.search(given):
            yield Finding(path, "has white space", given, "use _ in its place")
        family = parameter.path[:-2] if parameter.path[-1] == "parameterSpec" else ()
        if given in siblings and (not family or siblings[given] != family):
            yield Finding(path, "another parameter has this id", given, "rename one")
        siblings.setdefault(given, family)


@rule("parameter-id-argument", TUNING_GUIDE, "warning")
def parameter_id_argument(job: Job) -> Iterator[Finding]:
    """An id is the name of an argument without its dashes: the program gets --ID."""
    for parameter in parameters_of(job):
        if parameter.id.startswith("-") or "=" in parameter.id:
            path, bare = (*parameter.path, "parameterId"), parameter.id.strip("-=")
            what = f"the program would get --{parameter.id}"
            yield Finding(path, what, parameter.id, f"write {bare or 'a name'}")


@rule("parameter-values", STUDY_TYPES)
def parameter_values(job: Job) -> Iterator[Finding]:
    """Every parameter has a range or a list of values."""
    for parameter in parameters_of(job):
        if not parameter.field:
            hint = "give one of " + ", ".join(VALUE_SPECS)
            yield Finding(parameter.path, "has no values", "", hint, missing="doubleValueSpec")
        elif parameter.type not in RANGES and not parameter.options:
            path, hint = parameter.values_path, "values: [first, second]"
            yield Finding(path, "has no values", "", hint, missing="values")


@rule("parameter-range", STUDY_TYPES)
def parameter_range(job: Job) -> Iterator[Finding]:
    """A range has both bounds, and its maxValue is not below its minValue.

    A bound that is left out cannot be told from 0, and one value alone tunes nothing: both warn.
    """
    for parameter in parameters_of(job):
        if parameter.type not in RANGES:
            continue
        missing = [name for name in ("minValue", "maxValue") if name not in parameter.values]
        for name in missing:
            path, what = parameter.values_path, f"has no {name}, which is taken as 0"
            yield Finding(path, what, "", f"write {name}: 0", name, "warning")
        lowest, highest = parameter.bounds
        there = (*parameter.values_path, "maxValue")
        if highest < lowest:
            hint, what = "exchange them", f"is below minValue, {shown(lowest)}"
            yield Finding(
                there if "maxValue" not in missing else there[:-1], what, shown(highest), hint
            )
        elif highest == lowest and len(missing) < 2:
            what, hint = "the range is one value, so nothing is tuned", "put it among the args"
            yield Finding(parameter.values_path, what, shown(lowest), hint, level="warning")


@rule("parameter-scale", STUDY_TYPES)
def parameter_scale(job: Job) -> Iterator[Finding]:
    """On a log scale every value is above 0. CATEGORICAL parameters have no scale (a warning)."""
    for parameter in parameters_of(job):
        scale = parameter.spec.get("scaleType", "SCALE_TYPE_UNSPECIFIED")
        path = (*parameter.path, "scaleType")
        if parameter.type == "CATEGORICAL" and scale != "SCALE_TYPE_UNSPECIFIED":
            what = "categories have no scale"
            yield Finding(path, what, scale, "leave it out", level="warning")
        if scale not in LOG_SCALES or parameter.type == "CATEGORICAL":
            continue
        values = parameter.bounds if parameter.type in RANGES else parameter.options
        wrong = [number(value) for value in values if number(value) <= 0]
        if wrong:
            hint = "begin above 0, or take UNIT_LINEAR_SCALE"
            what = f"{scale} needs values above 0"
            yield Finding(parameter.values_path, what, shown(min(wrong)), hint)


@rule("parameter-discrete", STUDY_TYPES)
def parameter_discrete(job: Job) -> Iterator[Finding]:
    """Discrete values are at most 1,000, in increasing order, and 1e-10 apart."""
    for parameter in parameters_of(job):
        if parameter.type != "DISCRETE":
            continue
        path, options = (*parameter.values_path, "values"), parameter.options
        if len(options) > MOST_VALUES:
            hint = "take a range: doubleValueSpec or integerValueSpec"
            yield Finding(path, f"has more than {MOST_VALUES:,}", str(len(options)), hint)
        for index, (one, other) in enumerate(pairwise(options), start=1):
            if other - one < EPSILON:
                what = f"is not above the value before it, {shown(one)}"
                yield Finding((*path, index), what, shown(other), "sort them, each once")
                break


@rule("parameter-categories", STUDY_TYPES, "warning")
def parameter_categories(job: Job) -> Iterator[Finding]:
    """Categories are several, and each is there once."""
    for parameter in parameters_of(job):
        if parameter.type not in ("CATEGORICAL", "DISCRETE"):
            continue
        path, options = (*parameter.values_path, "values"), parameter.options
        if len(options) == 1:
            what, hint = "is one value, so nothing is tuned", "put it among the args"
            yield Finding(path, what, str(options[0]), hint)
        twice = [value for index, value in enumerate(options) if value in options[:index]]
        if twice and parameter.type == "CATEGORICAL":
            yield Finding(path, "has a category twice", str(twice[0]), "remove one")


@rule("vizier-only", STUDY_TYPES)
def vizier_only(job: Job) -> Iterator[Finding]:
    """A tuning job has no defaultValue and no observationNoise: only Vizier's studies do."""
    hint = "remove it: Google's client says that only Vertex AI Vizier has it"
    if "observationNoise" in study_of(job):
        value = study_of(job)["observationNoise"]
        yield Finding((*STUDY, "observationNoise"), "tuning jobs do not have it", value, hint)
    for parameter in parameters_of(job):
        if "defaultValue" in parameter.values:
            path = (*parameter.values_path, "defaultValue")
            value = str(parameter.values["defaultValue"])
            yield Finding(path, "tuning jobs do not have it", value, hint)


@rule("parameter-condition", STUDY_TYPES)
def parameter_condition(job: Job) -> Iterator[Finding]:
    """A conditional parameter has a spec, and a condition on values that its parent can have."""
    for parent in parameters_of(job):
        claimed = dict[str, list[Any]]()
        for path, child in parent.children():
            spec = child.get("parameterSpec")
            if spec is None:
                hint = "a parameter like any other"
                yield Finding(path, "has no parameterSpec", "", hint, missing="parameterSpec")
            field = next((name for name in CONDITIONS if name in child), "")
            if not field:
                yield _no_condition(path, parent)
                continue
            yield from _wrong_condition((*path, field), field, child[field], parent)
            values = child[field].get("values", [])
            id_ = (spec or {}).get("parameterId", "")
            before = claimed.setdefault(id_, [])
            if any(_is_among(value, before) for value in values):
                what = "a condition of the same id has one of these values, too"
                yield Finding((*path, field), what, id_, "make them disjoint")
            before.extend(values)


def _no_condition(path: Path, parent: Parameter) -> Finding:
    wanted = next((name for name, type_ in CONDITIONS.items() if type_ == parent.type), "")
    hint = f"{wanted}: {{values: […]}}" if wanted else "only values that can be listed have any"
    return Finding(path, "has no condition", "", hint, missing=wanted or "parentIntValues")


def _wrong_condition(
    path: Path, field: str, condition: dict[str, Any], parent: Parameter
) -> Iterator[Finding]:
    if parent.type and CONDITIONS[field] != parent.type:
        hint = {type_: name for name, type_ in CONDITIONS.items()}.get(
            parent.type, "a DOUBLE parameter has no conditions: make it DISCRETE"
        )
        yield Finding(path, f"the parent '{parent.id}' is {parent.type}", field, hint)
        return
    values = condition.get("values", [])
    if not values:
        yield Finding(path, "has no values", "", "values of the parent", missing="values")
    known = parent.type in RANGES or parent.options
    for index, value in enumerate(values if known else ()):
        if not _can_have(parent, value):
            what = f"the parent '{parent.id}' never has this value"
            hint = "its range is {} to {}".format(*map(shown, parent.bounds))
            if parent.type != "INTEGER":
                hint = f"it has {', '.join(map(str, parent.options[:10]))}"
            yield Finding((*path, "values", index), what, str(value), hint)


def _can_have(parent: Parameter, value: Any) -> bool:
    if parent.type == "INTEGER":
        lowest, highest = parent.bounds
        return lowest <= number(value) <= highest
    return _is_among(value, parent.options)


def _is_among(value: Any, options: Sequence[Any]) -> bool:
    if isinstance(value, str):
        return value in options
    return any(abs(number(value) - number(option)) <= EPSILON for option in options)
