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
        (lambda j: study(j).update(parameters=[]), "study_spec.parameters", "At least one"),
        (lambda j: study(j).update(metrics=[{}]), "metrics[0].metric_id", "Required"),
        (lambda j: study(j)["metrics"].append({"metricId": "m"}), "metrics", "unique: 'm'"),
        (lambda j: study(j)["metrics"][0].update(metricId="a\u00a0b"), "metric_id", "white space"),
        (lambda j: study(j).update(observationNoise="LOW"), "observation_noise", "Vizier"),
        (lambda j: study(j).update(algorithm="GRID_SEARCH"), "parameters[0]", "not DOUBLE"),
        (lambda j: parameter(j, 0).pop("parameterId"), "[0].parameter_id", "Required"),
        (lambda j: parameter(j, 0).update(parameterId="n"), "parameters", "unique: 'n'"),
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
            lambda j: parameter(j, 2)["discreteValueSpec"].update(values=[1, 1 + 1e-11]),
            "values",
            "apart",
        ),
        (
            lambda j: parameter(j, 2)["discreteValueSpec"].update(values=list(range(1001))),
            "values",
            "got 1001",
        ),
        (lambda j: parameter(j, 2).update(scaleType="UNIT_LOG_SCALE") or parameter(j, 2)
         ["discreteValueSpec"].update(values=[0, 1]), "[2]", "positive"),
        (
            lambda j: child(j)["parameterSpec"]["categoricalValueSpec"].update(values=["a", "a"]),
            "parameter_spec.values",
            "unique",
        ),
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


def test_nesting_has_an_end() -> None:
    leaf: dict[str, Any] = {"parameterId": "p", "integerValueSpec": {"maxValue": "1"}}
    for _ in range(50):
        condition = {"parentIntValues": {"values": ["1"]}, "parameterSpec": leaf}
        leaf = {**leaf, "conditionalParameterSpecs": [condition]}
    job = {**RIGHT, "studySpec": {**RIGHT["studySpec"], "parameters": [leaf]}}
    assert any("deeper than 10" in text for _, text in field_errors(job))
