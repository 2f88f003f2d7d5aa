"""Trials and what they measured, as rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localgcp.tuning.records import (
    Measurement,
    TrialRecord,
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


def test_of_a_trial_and_its_job_there_are_both_or_neither(table: TuningTable) -> None:
    jobs = JobTable(table.path)
    jobs.insert(job_row("11", {}))
    with pytest.raises(Exception, match="UNIQUE"):
        table.add_trial(trial(), job_row("11", {}))
    assert table.trials("9") == []


def tuning(**request: Any) -> TuningRecord:
    whole = {"displayName": "d", **request}
    return replace(TuningRecord.new(PROJECT, "us-central1", whole, JobState.PENDING), job_id="9")


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
