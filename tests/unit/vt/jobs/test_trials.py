"""Trials of a tuning job as rows: the best first, by the goal of the objective."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.jobs import view


def trial(number: int, state: str = "SUCCEEDED", **metrics: float) -> dict[str, Any]:
    """A trial as REST writes it."""
    measured = [{"metricId": name, "value": value} for name, value in metrics.items()]
    return {
        "id": str(number),
        "state": state,
        "parameters": [
            {"parameterId": "lr", "value": number / 1000},
            {"parameterId": "optimizer", "value": "adam"},
        ],
        **({"finalMeasurement": {"metrics": measured}} if measured else {}),
        "customJob": f"projects/1/locations/r/customJobs/{number}00",
    }


def tuning(goal: str, *found: dict[str, Any]) -> dict[str, Any]:
    metrics = [
        {"metricId": "heat", "goal": "MINIMIZE", "safetyConfig": {}},
        {"metricId": "acc", "goal": goal},
    ]
    return {
        "maxTrialCount": 12,
        "parallelTrialCount": 3,
        "studySpec": {"metrics": metrics},
        "trials": list(found),
    }


FOUND = (
    trial(10, "ACTIVE"),
    trial(2, acc=0.8, heat=1.0),
    trial(3, "INFEASIBLE"),
    trial(1, acc=0.9, heat=2.0),
    trial(4, acc=0.9, heat=3.0),
)


def test_a_trial_that_is_not_there_is_refused_with_those_that_are() -> None:
    every = view.trials_of(tuning("MAXIMIZE", *FOUND))
    assert view.find_trial(every, "10").job == "1000"
    with pytest.raises(CommandError) as refused:
        view.find_trial(every, "7")
    assert "1, 2, 3, 4, 10" in str(refused.value)
    with pytest.raises(CommandError, match="runs nothing yet"):
        view.find_trial(view.trials_of(tuning("MAXIMIZE", {"id": "1", "state": "REQUESTED"})), "1")
