"""Suggestions that learn from what was measured."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any, cast

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

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


BELOW = {"x": 0.25, "n": 3, "d": 8, "c": "b", "below": 4}


@pytest.mark.parametrize(
    ("state", "measured", "known"),
    [
        (TrialState.SUCCEEDED, {"m": 0.5, "k": 2.0}, optuna.trial.TrialState.COMPLETE),
        (TrialState.INFEASIBLE, None, optuna.trial.TrialState.FAIL),
        (TrialState.ACTIVE, None, optuna.trial.TrialState.RUNNING),
        (TrialState.REQUESTED, None, optuna.trial.TrialState.RUNNING),
    ],
)
def test_a_trial_is_told_to_the_sampler_as_it_was(
    state: TrialState, measured: dict[str, float] | None, known: optuna.trial.TrialState
) -> None:
    metrics: list[dict[str, Any]] = [{"metricId": "k"}, {"metricId": "m"}]
    measurement = Measurement(1, measured) if measured else None
    record = TrialRecord("1", 1, "1", "", BELOW, state, measurement=measurement)
    found = bayesian._past(SPACE, metrics, record)
    assert (found.state, found.values) == (known, [2.0, 0.5] if measured else None)
    # a reverse logarithmic scale is read from the top; of a list it is the place
    assert found.params == {"x": 0.76, "n": 3, "d": 2, "c": "b", "below": 4}
    assert found.distributions == {
        "x": FloatDistribution(0.01, 1.0, log=True),
        "n": IntDistribution(1, 9),
        "d": IntDistribution(0, 2),
        "c": CategoricalDistribution(("a", "b")),
        "below": IntDistribution(0, 5),
    }


class Asked:
    """A sampler that chooses the highest value of each parameter."""

    def __init__(self) -> None:
        self.ranges: list[Any] = []

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        self.ranges.append((name, low, high, log))
        return high

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        self.ranges.append((name, low, high, log))
        return high

    def suggest_categorical(self, name: str, choices: list[str]) -> str:
        self.ranges.append((name, choices))
        return choices[-1]


@pytest.mark.parametrize(
    ("parameter", "asked", "value"),
    [
        (Parameter("p", Kind.DOUBLE, 0.5, 2.0), ("p", 0.5, 2.0, False), 2.0),
        (Parameter("p", Kind.DOUBLE, 0.5, 2.0, scale="UNIT_LOG_SCALE"),
         ("p", 0.5, 2.0, True), 2.0),
        (Parameter("p", Kind.DOUBLE, 0.5, 2.0, scale="UNIT_REVERSE_LOG_SCALE"),
         ("p", 0.5, 2.0, True), 0.5),
        (Parameter("p", Kind.INTEGER, 1, 9), ("p", 1, 9, False), 9),
        (Parameter("p", Kind.INTEGER, 1, 9, scale="UNIT_REVERSE_LOG_SCALE"),
         ("p", 1, 9, True), 1),
        (Parameter("p", Kind.DISCRETE, choices=(0.5, 1.5, 8)), ("p", 0, 2, False), 8),
        (Parameter("p", Kind.CATEGORICAL, choices=("a", "b")), ("p", ["a", "b"]), "b"),
    ],
)  # fmt: skip
def test_each_kind_of_parameter_is_asked_for_in_its_range(
    parameter: Parameter, asked: Any, value: Value
) -> None:
    sampler = Asked()
    assert bayesian._suggested(cast(optuna.Trial, sampler), parameter) == value
    assert sampler.ranges == [asked]


def test_five_trials_are_by_chance_and_a_running_one_counts_as_bad(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, Any]] = []
    real = optuna.samplers.TPESampler

    def sampler(**options: Any) -> optuna.samplers.TPESampler:
        given.append(options)
        return real(**options)

    monkeypatch.setattr(optuna.samplers, "TPESampler", sampler)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    bayesian.suggest(SPACE, [{"metricId": "m"}], [], "a/1")
    assert given == [{"n_startup_trials": 5, "constant_liar": True, "seed": 0xF5964052}]
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING


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
