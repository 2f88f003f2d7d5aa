"""Wrong tuning jobs, and the field that is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from localgcp.tuning.checks import field_errors

RIGHT: dict[str, Any] = {
    "maxTrialCount": 4,
    "parallelTrialCount": 9,
    "studySpec": {
        "metrics": [{"metricId": "m", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameterId": "x",
                "doubleValueSpec": {"minValue": 0.1, "maxValue": 1},
                "scaleType": "UNIT_LOG_SCALE",
            },
            {
                "parameterId": "n",
                "integerValueSpec": {"minValue": "1", "maxValue": "3"},
                "conditionalParameterSpecs": [
                    {
                        "parentIntValues": {"values": ["1", "2"]},
                        "parameterSpec": {
                            "parameterId": "c",
                            "categoricalValueSpec": {"values": ["a", "b"]},
                        },
                    }
                ],
            },
            {"parameterId": "d", "discreteValueSpec": {"values": [1, 2.5]}},
        ],
    },
}


def study(job: dict[str, Any]) -> dict[str, Any]:
    return job["studySpec"]


def parameter(job: dict[str, Any], index: int) -> dict[str, Any]:
    return job["studySpec"]["parameters"][index]


def child(job: dict[str, Any]) -> dict[str, Any]:
    return parameter(job, 1)["conditionalParameterSpecs"][0]


def test_a_right_one_has_no_errors_even_if_it_runs_more_at_once_than_it_has() -> None:
    assert list(field_errors(RIGHT)) == []


@pytest.mark.parametrize(
    ("break_it", "field", "text"),
    [
        (lambda j: j.pop("maxTrialCount"), "max_trial_count", "greater than 0"),
        (lambda j: j.update(parallelTrialCount=-1), "parallel_trial_count", "greater than 0"),
        (lambda j: j.update(maxFailedTrialCount=-1), "max_failed_trial_count", "negative"),
        (lambda j: j.update(maxFailedTrialCount=5), "max_failed_trial_count", "than max_trial"),
        (lambda j: j.pop("studySpec"), "study_spec.metrics", "At least one metric"),
        (lambda j: study(j).update(metrics=[{}]), "metrics[0].metric_id", "Required"),
        (lambda j: study(j)["metrics"].append({"metricId": "m"}), "metrics", "unique: 'm'"),
        (lambda j: study(j)["metrics"][0].update(metricId="a\u00a0b"), "metric_id", "white space"),
        (lambda j: study(j).update(observationNoise="LOW"), "observation_noise", "Vizier"),
        (lambda j: study(j).update(algorithm="GRID_SEARCH"), "parameters[0]", "not DOUBLE"),
        (lambda j: parameter(j, 0).pop("doubleValueSpec"), "parameters[0]", "value specs"),
        (lambda j: parameter(j, 0)["doubleValueSpec"].update(minValue=2), "[0]", "not be greater"),
        (lambda j: parameter(j, 0)["doubleValueSpec"].pop("minValue"), "[0]", "positive, not 0"),
        (
            lambda j: parameter(j, 0)["doubleValueSpec"].update(maxValue="Infinity"),
            "parameters[0]",
            "finite",
        ),
        (
            lambda j: parameter(j, 0)["doubleValueSpec"].update(defaultValue=0.5),
            "[0].default_value",
            "Vizier",
        ),
        (lambda j: parameter(j, 2)["discreteValueSpec"].update(values=[]), "values", "Required"),
        (lambda j: parameter(j, 2)["discreteValueSpec"].update(values=[2, 1]), "values", "order"),
        (
            lambda j: parameter(j, 2)["discreteValueSpec"].update(values=list(range(1001))),
            "values",
            "got 1001",
        ),
        (lambda j: parameter(j, 2).update(scaleType="UNIT_LOG_SCALE") or parameter(j, 2)
         ["discreteValueSpec"].update(values=[0, 1]), "[2]", "positive"),
        (
            lambda j: child(j)["parameterSpec"].update(scaleType="UNIT_LINEAR_SCALE"),
            "scale_type",
            "CATEGORICAL",
        ),
        (lambda j: child(j)["parentIntValues"].update(values=["9"]), "specs[0]", "9 is no value"),
        (
            lambda j: child(j).update(parentCategoricalValues=child(j).pop("parentIntValues")),
            "conditional_parameter_specs[0]",
            "parentIntValues must be set",
        ),
        (
            lambda j: parameter(j, 1)["conditionalParameterSpecs"].append(
                copy.deepcopy(child(j))
            ),
            "conditional_parameter_specs[1]",
            "twice for the same value",
        ),
        (
            lambda j: parameter(j, 0).update(conditionalParameterSpecs=[child(j)]),
            "conditional_parameter_specs[0]",
            "no conditional parameters",
        ),
    ],
)  # fmt: skip
def test_a_wrong_one_names_the_field(
    break_it: Callable[[dict[str, Any]], object], field: str, text: str
) -> None:
    job = copy.deepcopy(RIGHT)
    break_it(job)
    found = list(field_errors(job))
    assert any(field in at and text in message for at, message in found), found


PARAMETERS = "study_spec.parameters"
VIZIER = "Only supported by the Vertex AI Vizier service."


def with_parameter(**given: Any) -> dict[str, Any]:
    """A job of one parameter, with an id unless it is given."""
    spec = {"metrics": [{"metricId": "m"}], "parameters": [{"parameterId": "p"} | given]}
    return {"maxTrialCount": 1, "parallelTrialCount": 1, "studySpec": spec}


def nested(kind: dict[str, Any], *children: dict[str, Any]) -> dict[str, Any]:
    return with_parameter(**kind, conditionalParameterSpecs=list(children))


def when(name: str = "c", **condition: Any) -> dict[str, Any]:
    spec = {"parameterId": name, "categoricalValueSpec": {"values": ["a"]}}
    return {**condition, "parameterSpec": spec}


INTEGER = {"integerValueSpec": {"minValue": "1", "maxValue": "3"}}
DISCRETE = {"discreteValueSpec": {"values": [1, 2.5]}}
CATEGORICAL = {"categoricalValueSpec": {"values": ["a", "b"]}}
CHILD = f"{PARAMETERS}[0].conditional_parameter_specs[0]"


@pytest.mark.parametrize(
    ("job", "field", "said"),
    [
        ({**with_parameter(**INTEGER), "maxTrialCount": 0}, "max_trial_count",
         "Must be greater than 0."),
        ({**with_parameter(**INTEGER), "parallelTrialCount": 0}, "parallel_trial_count",
         "Must be greater than 0."),
        ({**with_parameter(**INTEGER), "maxFailedTrialCount": -1}, "max_failed_trial_count",
         "Must not be negative."),
        ({**with_parameter(**INTEGER), "maxFailedTrialCount": 2}, "max_failed_trial_count",
         "Must not be greater than max_trial_count (1)."),
        (with_parameter(**INTEGER, parameterId=""), f"{PARAMETERS}[0].parameter_id",
         "Required field is not set."),
        (with_parameter(**INTEGER, parameterId="a b"), f"{PARAMETERS}[0].parameter_id",
         "Must not contain white space: 'a b'."),
        (with_parameter(), f"{PARAMETERS}[0]", "One of the value specs must be set."),
        (with_parameter(integerValueSpec={"minValue": "1", "maxValue": "3", "defaultValue": "2"}),
         f"{PARAMETERS}[0].default_value", VIZIER),
        (with_parameter(doubleValueSpec={"minValue": 2, "maxValue": 1.5}), f"{PARAMETERS}[0]",
         "min_value 2 must not be greater than max_value 1.5."),
        (with_parameter(doubleValueSpec={"maxValue": "NaN"}), f"{PARAMETERS}[0]",
         "min_value, max_value and the space between them must be finite."),
        (with_parameter(doubleValueSpec={"minValue": -1e308, "maxValue": 1e308}),
         f"{PARAMETERS}[0]", "min_value, max_value and the space between them must be finite."),
        *((with_parameter(doubleValueSpec={"minValue": 0, "maxValue": 1}, scaleType=scale),
           f"{PARAMETERS}[0]",
           f"{scale} needs a feasible space that is strictly positive, not 0.")
          for scale in ("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")),
        *((with_parameter(discreteValueSpec={"values": [0, 1]}, scaleType=scale),
           f"{PARAMETERS}[0]", f"{scale} needs a feasible space that is strictly positive.")
          for scale in ("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")),
        (with_parameter(categoricalValueSpec={}), f"{PARAMETERS}[0].values",
         "Required field is not set."),
        (with_parameter(discreteValueSpec={}, scaleType="UNIT_LOG_SCALE"),
         f"{PARAMETERS}[0].values", "Required field is not set."),
        (with_parameter(categoricalValueSpec={"values": ["b", "a", "b"]}),
         f"{PARAMETERS}[0].values", "Ids must be unique: 'b'."),
        (with_parameter(**CATEGORICAL, scaleType="UNIT_LOG_SCALE"),
         f"{PARAMETERS}[0].scale_type", "Must not be set for a CATEGORICAL parameter."),
        (with_parameter(discreteValueSpec={"values": list(range(1001))}),
         f"{PARAMETERS}[0].values", "No more than 1000 values, got 1001."),
        (with_parameter(discreteValueSpec={"values": [1, "Infinity"]}), f"{PARAMETERS}[0].values",
         "Values must be finite."),
        (with_parameter(discreteValueSpec={"values": [1, 1]}), f"{PARAMETERS}[0].values",
         "Must be in increasing order and at least 1e-10 apart."),
        (nested({"doubleValueSpec": {"maxValue": 1}}, when()), CHILD,
         "A DOUBLE parameter has no conditional parameters."),
        (nested(INTEGER, when(parentDiscreteValues={"values": [1]})), CHILD,
         "parentIntValues must be set, as the parent is INTEGER."),
        (nested(DISCRETE, when(parentIntValues={"values": ["1"]})), CHILD,
         "parentDiscreteValues must be set, as the parent is DISCRETE."),
        (nested(CATEGORICAL, when(parentIntValues={"values": ["1"]})), CHILD,
         "parentCategoricalValues must be set, as the parent is CATEGORICAL."),
        *((nested(INTEGER, when(parentIntValues={"values": ["2", str(value)]})), CHILD,
           f"{value} is no value of p.") for value in (0, 4)),
        (nested({"integerValueSpec": {}}, when(parentIntValues={"values": ["0", "1"]})), CHILD,
         "1 is no value of p."),
        (nested(DISCRETE, when(parentDiscreteValues={"values": [2]})), CHILD,
         "2 is no value of p."),
        (nested(CATEGORICAL, when(parentCategoricalValues={"values": ["c"]})), CHILD,
         "'c' is no value of p."),
        (nested(INTEGER, when(parentIntValues={"values": ["1", "2"]}),
                when(parentIntValues={"values": ["2", "3"]})),
         f"{PARAMETERS}[0].conditional_parameter_specs[1]",
         "'c' is there twice for the same value of its parent."),
        (nested(INTEGER, when("", parentIntValues={"values": ["1"]})),
         f"{CHILD}.parameter_spec.parameter_id", "Required field is not set."),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_alone_with_its_field(
    job: dict[str, Any], field: str, said: str
) -> None:
    assert list(field_errors(job)) == [(field, said)]


def test_a_grid_has_no_parameter_between_whose_values_there_are_others() -> None:
    job = with_parameter(doubleValueSpec={"maxValue": 1})
    job["studySpec"]["algorithm"] = "GRID_SEARCH"
    assert list(field_errors(job)) == [(
        f"{PARAMETERS}[0]",
        "GRID_SEARCH takes INTEGER, CATEGORICAL and DISCRETE parameters, not DOUBLE.",
    )]  # fmt: skip
    for kind in (INTEGER, DISCRETE, CATEGORICAL):
        job["studySpec"]["parameters"] = [{"parameterId": "p"} | kind]
        assert list(field_errors(job)) == []


def test_an_empty_one_lacks_all() -> None:
    assert list(field_errors({})) == [
        ("max_trial_count", "Must be greater than 0."),
        ("parallel_trial_count", "Must be greater than 0."),
        ("study_spec.metrics", "At least one metric should be specified."),
        ("study_spec.parameters", "At least one parameter should be specified."),
    ]


@pytest.mark.parametrize(("levels", "wanted"), [(10, 0), (11, 1)])
def test_ten_levels_are_below_a_parameter(levels: int, wanted: int) -> None:
    leaf: dict[str, Any] = {"parameterId": "p"} | INTEGER
    for _ in range(levels):
        condition = {"parentIntValues": {"values": ["1"]}, "parameterSpec": leaf}
        leaf = {"parameterId": "p", **INTEGER, "conditionalParameterSpecs": [condition]}
    job = with_parameter(**leaf)
    deep = PARAMETERS + "[0]" + ".conditional_parameter_specs[0].parameter_spec" * 10
    assert list(field_errors(job)) == [
        (deep, "Conditional parameters are nested deeper than 10 levels.")
    ] * wanted  # fmt: skip
