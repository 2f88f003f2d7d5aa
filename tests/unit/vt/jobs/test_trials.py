"""Trials of a tuning job as rows: the best first, by the goal of the objective."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.jobs import trials
from vertex_training_cli.jobs.trials import Trial


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


@pytest.mark.parametrize(
    ("goal", "order"),
    [("MAXIMIZE", ["1", "4", "2", "3", "10"]), ("MINIMIZE", ["2", "1", "4", "3", "10"])],
)
def test_the_best_trial_is_first_and_those_without_a_result_are_last(
    goal: str, order: list[str]
) -> None:
    assert [each.id for each in trials.trials_of(tuning(goal, *FOUND))] == order


def test_a_goal_that_is_left_open_means_maximize() -> None:
    assert trials.trials_of(tuning("GOAL_TYPE_UNSPECIFIED", *FOUND))[0].id == "1"


def test_the_table_has_a_column_for_each_metric_and_parameter() -> None:
    heads, rows = trials.table(tuning("MAXIMIZE", *FOUND))
    assert heads == ("trial", "state", "acc", "heat", "lr", "optimizer", "id")
    assert rows[0] == ("1", "SUCCEEDED", "0.9", "2", "0.001", "adam", "100")
    assert rows[-1] == ("10", "ACTIVE", "", "", "0.01", "adam", "1000")


def test_trials_are_counted_by_state() -> None:
    assert trials.summary(tuning("MAXIMIZE", *FOUND)) == (
        "5 of 12, 3 at once: 1 ACTIVE, 1 INFEASIBLE, 3 SUCCEEDED"
    )
    assert trials.summary(tuning("MAXIMIZE")) == "0 of 12, 3 at once"


def test_a_trial_that_is_not_there_is_refused_with_those_that_are() -> None:
    every = trials.trials_of(tuning("MAXIMIZE", *FOUND))
    assert trials.find(every, "10").job == "1000"
    with pytest.raises(CommandError) as refused:
        trials.find(every, "7")
    assert "1, 2, 3, 4, 10" in str(refused.value)
    with pytest.raises(CommandError, match="runs nothing yet"):
        trials.find(trials.trials_of(tuning("MAXIMIZE", {"id": "1", "state": "REQUESTED"})), "1")


def test_an_empty_message_has_no_trials() -> None:
    assert trials.table({}) == (("trial", "state", "id"), [])


def test_a_trial_is_read_whole_and_what_rest_leaves_out_is_nothing() -> None:
    # REST writes no zero and no empty text.
    bare = {"parameters": [{}], "finalMeasurement": {"metrics": [{}, {"metricId": "loss"}]}}
    refused = {"id": "x", "state": "INFEASIBLE", "infeasibleReason": "too hot"}
    found = trials.trials_of({"trials": [refused, bare, trial(7, "STATE_STOPPING", acc=1)]})
    parameters = {"lr": 0.007, "optimizer": "adam"}
    assert found == [
        Trial("", "", {"": None}, {"": 0.0, "loss": 0.0}, "", ""),
        Trial("x", "INFEASIBLE", {}, {}, "too hot", ""),
        Trial("7", "STOPPING", parameters, {"acc": 1.0}, "", "700"),
    ]
    assert [each.number for each in found] == [0, 0, 7]
    assert trials.summary({"trials": [{}]}) == "1 of 0, 0 at once: 1 "
