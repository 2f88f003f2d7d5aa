"""Suggestions that learn from what was measured."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

import pytest

from localgcp.tuning import bayesian
from localgcp.tuning.parameters import Kind, Parameter, search_space
from localgcp.tuning.records import Measurement, TrialRecord, TrialState, Value

SPACE = search_space(
    {
        "parameters": [
            {
                "parameterId": "x",
                "doubleValueSpec": {"minValue": 0.01, "maxValue": 1},
                "scaleType": "UNIT_REVERSE_LOG_SCALE",
            },
            {"parameterId": "n", "integerValueSpec": {"minValue": "1", "maxValue": "9"}},
            {"parameterId": "d", "discreteValueSpec": {"values": [0.5, 1.5, 8]}},
            {
                "parameterId": "c",
                "categoricalValueSpec": {"values": ["a", "b"]},
                "conditionalParameterSpecs": [
                    {
                        "parentCategoricalValues": {"values": ["b"]},
                        "parameterSpec": {
                            "parameterId": "below",
                            "integerValueSpec": {"maxValue": "5"},
                        },
                    }
                ],
            },
        ]
    }
)


def trial(number: int, values: dict[str, Value], state: TrialState, score: float) -> TrialRecord:
    measured = Measurement(1, {"m": score}) if state is TrialState.SUCCEEDED else None
    return TrialRecord("1", number, str(number), "", values, state, measurement=measured)


@pytest.mark.parametrize("goal", ["MAXIMIZE", "MINIMIZE"])
def test_suggestions_get_better_with_the_trials_and_stay_in_the_space(goal: str) -> None:
    metrics = [{"metricId": "m", "goal": goal}]
    sign = 1 if goal == "MAXIMIZE" else -1
    trials: list[TrialRecord] = []
    for number in range(1, 31):
        values = bayesian.suggest(SPACE, metrics, trials, f"seed/{number}")
        assert 0.01 <= float(values["x"]) <= 1
        assert values["n"] in range(1, 10)
        assert values["d"] in (0.5, 1.5, 8)
        assert ("below" in values) == (values["c"] == "b")
        trials.append(trial(number, values, TrialState.SUCCEEDED, sign * float(values["x"])))
    first = statistics.mean(float(each.parameters["x"]) for each in trials[:10])
    assert statistics.mean(float(each.parameters["x"]) for each in trials[-10:]) > first


def test_trials_that_run_and_that_failed_are_taken_into_account_and_a_seed_repeats() -> None:
    metrics = [{"metricId": "m"}]
    values = bayesian.suggest(SPACE, metrics, [], "s")
    states = (TrialState.SUCCEEDED, TrialState.INFEASIBLE, TrialState.ACTIVE, TrialState.REQUESTED)
    trials = [trial(n, values, state, 1.0) for n, state in enumerate(states * 3, 1)]
    again = bayesian.suggest(SPACE, metrics, trials, "t")
    assert again == bayesian.suggest(SPACE, metrics, trials, "t")
    assert again != values


def test_two_metrics_and_a_space_of_one_point() -> None:
    one = [Parameter("x", Kind.DOUBLE, 2.0, 2.0), Parameter("n", Kind.INTEGER, 0, 0)]
    metrics: list[dict[str, Any]] = [{"metricId": "m"}, {"metricId": "k", "goal": "MINIMIZE"}]
    values: dict[str, Value] = {"x": 2.0, "n": 0}
    done = TrialRecord(
        "1", 1, "1", "", values, TrialState.SUCCEEDED, measurement=Measurement(1, {"m": 1, "k": 2})
    )
    assert bayesian.suggest(one, metrics, [done], "s") == values


def test_a_thousand_trials_are_no_burden() -> None:
    metrics = [{"metricId": "m"}]
    values = bayesian.suggest(SPACE, metrics, [], "s")
    trials = [trial(n, values, TrialState.SUCCEEDED, float(n)) for n in range(1000)]
    assert bayesian.suggest(SPACE, metrics, trials, "t")


def test_optuna_is_loaded_only_when_a_study_asks_for_it() -> None:
    code = "import sys, localgcp.tuning.service; print('optuna' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
