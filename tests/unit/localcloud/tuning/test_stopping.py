"""The rule of the median: which trials it ends, by the definition of the API."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.runner.refusals import Refusal
from localgcp.tuning.records import Measurement
from localgcp.tuning.stopping import reason_to_stop, stored_only
from tests.unit.localcloud.conftest import Cloud
from tests.unit.localcloud.tuning.studies import (
    JobState,
    TrialState,
    python,
    run,
    tuning,
)

UP: dict[str, Any] = {
    "metrics": [{"metricId": "m", "goal": "MAXIMIZE"}],
    "medianAutomatedStoppingSpec": {},
}
BY_TIME = {**UP, "medianAutomatedStoppingSpec": {"useElapsedDuration": True}}


def curve(*values: float, apart: float = 1) -> list[Measurement]:
    """A value a step, each ``apart`` seconds after the one before."""
    return [Measurement(n, {"m": value}, n * apart) for n, value in enumerate(values, 1)]


#: Means up to step 2: 0.3, 0.5, 0.7; up to step 3: 0.4, 0.6, 0.8.
COMPLETED = [curve(0.2, 0.4, 0.6), curve(0.4, 0.6, 0.8), curve(0.6, 0.8, 1.0)]


@pytest.mark.parametrize(
    ("study", "trial", "said"),
    [
        (UP, curve(0.1, 0.49), "at step 2, 0.49, is worse than 0.5"),
        (UP, curve(0.1, 0.5), ""),  # strictly below
        (UP, curve(0.55, 0.1), ""),  # its best counts, not its last
        (UP, curve(0.55, 0.1, 0.1), "at step 3, 0.55, is worse than 0.6"),
        (BY_TIME, curve(0.55, apart=3), "after 3.0 s, 0.55, is worse than 0.6"),  # as their third
        (UP, [], ""),
        (UP, [Measurement(0, {"m": 0.0})], ""),  # none of them had begun to report
        ({"metrics": UP["metrics"]}, curve(0.0, 0.0), ""),
    ],
)
def test_a_trial_below_the_median_of_the_completed_ones_is_stopped(
    study: dict[str, Any], trial: list[Measurement], said: str
) -> None:
    median = "the median of 3 completed trials (medianAutomatedStoppingSpec)"
    whole = said and f"its best m {said}, {median}"
    assert reason_to_stop(study, trial, COMPLETED) == whole


def test_nothing_is_stopped_before_a_trial_is_complete() -> None:
    assert reason_to_stop(UP, curve(0.0), []) == ""
    assert reason_to_stop(UP, curve(0.0), [[]]) == ""


def test_rules_that_are_not_carried_out_are_told() -> None:
    fields = ("decayCurveStoppingSpec", "convexAutomatedStoppingSpec", "studyStoppingConfig")
    what = "is stored and not carried out here: every trial runs to its end"
    hint = "medianAutomatedStoppingSpec is carried out"
    assert list(stored_only(UP)) == []
    assert list(stored_only({**UP, **{each: {} for each in fields}})) == [
        Refusal(("studySpec", field), what, hint, "warning") for field in fields
    ]


#: Trials report lr at steps 1 and 2; one with a small lr never ends by itself.
SLOW = """
import json, os, sys, time
rate = float(sys.argv[2])
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "a", buffering=1) as file:
    for step in (1, 2):
        print(json.dumps({"accuracy": rate, "global_step": step, "timestamp": time.time()}),
              file=file)
if rate < 0.5:
    time.sleep(600)
"""
#: The grid from the top: trials of 0.8 and 0.6 are complete before those that would be stopped.
CATEGORIES = {"parameter_id": "lr", "categorical_value_spec": {"values": ["0.8", "0.6", "0.2"]}}


def stopping(**study: Any) -> dict[str, Any]:
    search = {"algorithm": "GRID_SEARCH", "median_automated_stopping_spec": {}, **study}
    return tuning(python(SLOW), trials=3, parallel=1, parameters=[CATEGORIES], study=search)


@pytest.mark.parametrize("selection", ["LAST_MEASUREMENT", "BEST_MEASUREMENT"])
def test_a_stopped_trial_succeeds_with_what_it_reported(cloud: Cloud, selection: str) -> None:
    done = run(cloud, stopping(measurement_selection_type=selection))
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    assert [trial.state for trial in done.trials] == [TrialState.SUCCEEDED] * 3
    last = done.trials[2]
    assert last.final_measurement.metrics[0].value == 0.2
    assert [each.step_count for each in last.measurements] == [1, 2]
    assert [each.metrics[0].value for each in last.measurements] == [0.2, 0.2]
    assert not last.infeasible_reason
    job = cloud.client.get_custom_job(name=last.custom_job)
    assert job.state == JobState.JOB_STATE_CANCELLED
    assert "trial 3 is stopped early: its best accuracy at step 2, 0.2, is worse" in cloud.log(job)
