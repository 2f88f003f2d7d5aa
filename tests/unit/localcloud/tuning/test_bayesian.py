"""Suggestions that learn from what was measured."""

from __future__ import annotations

import subprocess
import sys

from localgcp.tuning import bayesian
from localgcp.tuning.parameters import search_space
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


def test_a_thousand_trials_are_no_burden() -> None:
    metrics = [{"metricId": "m"}]
    values = bayesian.suggest(SPACE, metrics, [], "s")
    trials = [trial(n, values, TrialState.SUCCEEDED, float(n)) for n in range(1000)]
    assert bayesian.suggest(SPACE, metrics, trials, "t")


def test_optuna_is_loaded_only_when_a_study_asks_for_it() -> None:
    code = "import sys, localgcp.tuning.service; print('optuna' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
