"""Trials and what they measured, as rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory.store import project_number
from localgcp.tuning.records import (
    Measurement,
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
    best_trial,
)
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row


@pytest.fixture
def table(tmp_path: Path) -> TuningTable:
    JobTable(tmp_path / "cloud.sqlite").list()  # the server makes it before
    return TuningTable(tmp_path / "cloud.sqlite")


def trial(number: int = 1, job_id: str = "11", **changes: Any) -> TrialRecord:
    return TrialRecord("9", number, job_id, f"jobs/{job_id}", {"x": 1.5, "c": "a"}, **changes)


def test_a_trial_comes_with_its_job(table: TuningTable) -> None:
    two = trial(2, "12", state=TrialState.ACTIVE, start_time="t")
    for made in (two, trial()):
        table.add_trial(made, job_row(made.job_id, {}))
    assert table.trials("9") == [trial(), two]
    assert table.trials("8") == []
    assert table.trial_of("12") == two
    assert table.trial_of("13") is None
    jobs = JobTable(table.path)
    assert {job.job_id for job in jobs.list()} == {"11", "12"}


def test_of_a_trial_and_its_job_there_are_both_or_neither(table: TuningTable) -> None:
    jobs = JobTable(table.path)
    jobs.insert(job_row("11", {}))
    with pytest.raises(Exception, match="UNIQUE"):
        table.add_trial(trial(), job_row("11", {}))
    assert table.trials("9") == []


@pytest.mark.parametrize("state", [TrialState.SUCCEEDED, TrialState.INFEASIBLE])
def test_a_trial_changes_until_it_is_over(table: TuningTable, state: TrialState) -> None:
    table.add_trial(trial(), job_row("11", {}))
    table.add_trial(trial(2, "12"), job_row("12", {}))
    over = trial(
        state=state, start_time="a", end_time="b", measurement=Measurement(3, {"m": 0.5}, 1.5),
        infeasible_reason="why",
    )  # fmt: skip
    table.change_trial(over)
    assert table.trials("9") == [over, trial(2, "12")]
    table.change_trial(replace(over, state=TrialState.ACTIVE))
    assert table.trial_of("11") == over
    stopping = trial(2, "12", state=TrialState.STOPPING)
    table.change_trial(stopping)
    assert table.trial_of("12") == stopping


@pytest.mark.parametrize(
    ("state", "over"),
    [("REQUESTED", False), ("ACTIVE", False), ("STOPPING", False), ("SUCCEEDED", True),
     ("INFEASIBLE", True)],
)  # fmt: skip
def test_states_are_the_apis(state: str, over: bool) -> None:
    assert TrialState(state).over is over


def test_measurements_are_kept_by_trial_and_step(table: TuningTable) -> None:
    assert table.measurements("9") == {}
    table.put_measurements(trial(2), [Measurement(5, {"m": 1.0}, 2.0), Measurement(1, {}, 0.5)])
    table.put_measurements(trial(1), [Measurement(7, {"m": 3.0, "k": 4.0})])
    table.put_measurements(trial(2), [Measurement(5, {"m": 2.0}, 3.0)])
    assert table.measurements("9") == {
        1: [Measurement(7, {"m": 3.0, "k": 4.0}, 0.0)],
        2: [Measurement(1, {}, 0.5), Measurement(5, {"m": 2.0}, 3.0)],
    }
    assert list(table.measurements("9")) == [1, 2]
    assert table.measurements("8") == {}


@pytest.mark.parametrize(("count", "first"), [(100, 0), (101, 1)])
def test_a_hundred_measurements_are_kept_of_a_trial(
    table: TuningTable, count: int, first: int
) -> None:
    table.put_measurements(trial(2), [Measurement(0, {"m": 0.0})])
    table.put_measurements(trial(), [Measurement(step, {"m": 0.0}) for step in range(count)])
    found = table.measurements("9")
    assert [each.step for each in found[1]] == list(range(first, count))
    assert len(found[2]) == 1


def tuning(**request: Any) -> TuningRecord:
    whole = {"displayName": "d", **request}
    return replace(TuningRecord.new(PROJECT, "us-central1", whole, JobState.PENDING), job_id="9")


def test_a_tuning_job_goes_with_its_trials_and_their_jobs(table: TuningTable) -> None:
    jobs = JobTable(table.path)
    jobs.insert(job_row("1", {}))
    for made in (tuning(), replace(tuning(), job_id="8")):
        table.insert(made)
    table.add_trial(trial(), job_row("11", {}))
    other = replace(trial(1, "12"), tuning_id="8")
    table.add_trial(other, job_row("12", {}))
    table.put_measurements(trial(), [Measurement(1, {})])
    table.put_measurements(other, [Measurement(1, {})])
    assert table.delete("9") is True
    assert table.delete("9") is False
    assert {job.job_id for job in jobs.list()} == {"1", "12"}
    assert (table.trials("9"), table.measurements("9"), table.get("9")) == ([], {}, None)
    assert (table.trials("8"), len(table.measurements("8"))) == ([other], 1)
    assert table.get("8") is not None


def test_a_tuning_job_says_what_it_was_sent_with() -> None:
    made = tuning(
        trialJobSpec={"a": 1}, studySpec={"b": 2}, maxTrialCount=4, parallelTrialCount="3",
        maxFailedTrialCount=2,
    )  # fmt: skip
    number = project_number(PROJECT)
    assert made.name == f"projects/{number}/locations/us-central1/hyperparameterTuningJobs/9"
    assert (made.spec, made.study) == ({"a": 1}, {"b": 2})
    assert (made.max_trials, made.parallel_trials, made.max_failed_trials) == (4, 3, 2)
    least = tuning()
    assert (least.spec, least.study) == ({}, {})
    assert (least.max_trials, least.parallel_trials, least.max_failed_trials) == (0, 0, 0)


def measured(number: int, value: float | None) -> TrialRecord:
    found = None if value is None else Measurement(1, {"m": value, "k": -value})
    return trial(number, f"1{number}", measurement=found)


@pytest.mark.parametrize(
    ("goal", "values", "best"),
    [
        ("MAXIMIZE", [0.1, None, 0.3, 0.3, 0.2], 3),
        ("MINIMIZE", [0.2, 0.1, None, 0.1], 2),
        ("GOAL_TYPE_UNSPECIFIED", [0.1, 0.3], 2),
        ("MAXIMIZE", [None, None], None),
        ("MAXIMIZE", [], None),
    ],
)
def test_the_best_trial_is_the_first_with_the_best_value_of_the_first_metric(
    goal: str, values: list[float | None], best: int | None
) -> None:
    metrics = [{"metricId": "m", "goal": goal}, {"metricId": "k", "goal": "MAXIMIZE"}]
    trials = [measured(number, value) for number, value in enumerate(values, start=1)]
    found = best_trial(tuning(studySpec={"metrics": metrics}), trials)
    assert (found and found.number) == best
