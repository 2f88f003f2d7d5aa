"""Suggestions over the search space, and what becomes of what trials report."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localgcp.tuning.driver import Progress, Report, next_step, read_report
from localgcp.tuning.records import (
    Measurement,
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
    best_trial,
)
from localgcp.tuning.searches import Parameter, grid, random_point, search_space, suggest
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row


def space(*parameters: dict[str, Any]) -> list[Parameter]:
    return search_space({"parameters": list(parameters)})


def double(low: float, high: float, scale: str = "", name: str = "x") -> dict[str, Any]:
    made = {"parameterId": name, "doubleValueSpec": {"minValue": low, "maxValue": high}}
    return {**made, "scaleType": scale} if scale else made


def integer(low: int, high: int, name: str = "n", **more: Any) -> dict[str, Any]:
    # The JSON form of an int64 is text.
    spec = {"minValue": str(low), "maxValue": str(high)}
    return {"parameterId": name, "integerValueSpec": spec, **more}


def categorical(*values: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return {"parameterId": name, "categoricalValueSpec": {"values": list(values)}, **more}


def discrete(*values: float, name: str = "d", **more: Any) -> dict[str, Any]:
    return {"parameterId": name, "discreteValueSpec": {"values": list(values)}, **more}


def when(field: str, values: list[Any], parameter: dict[str, Any]) -> dict[str, Any]:
    return {field: {"values": values}, "parameterSpec": parameter}


def test_a_grid_has_every_combination_once_and_the_last_parameter_changes_fastest() -> None:
    found = space(integer(-1, 1), categorical("a", "b"), discrete(0.5, 2))
    points = [tuple(point.values()) for point in grid(found)]
    assert points == list(itertools.product([-1, 0, 1], ["a", "b"], [0.5, 2]))


def test_a_grid_over_all_integers_begins_without_listing_them() -> None:
    low = -(2**63)
    child = when("parentIntValues", [str(low)], categorical("a", "b"))
    found = space(integer(low, 2**63 - 1, conditionalParameterSpecs=[child]))
    first = [*itertools.islice(grid(found), 3)]
    assert first == [{"n": low, "c": "a"}, {"n": low, "c": "b"}, {"n": low + 1}]


@pytest.mark.parametrize("scale", ["", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE"])
def test_random_values_stay_in_their_bounds_and_follow_their_seed(scale: str) -> None:
    found = space(double(1e-4, 1, scale), integer(1, 3, scaleType=scale), categorical("a", "b"))
    points = [random_point(found, str(seed)) for seed in range(300)]
    assert points[7] == random_point(found, "7")
    assert all(1e-4 <= float(point["x"]) <= 1 for point in points)
    assert {point["n"] for point in points} == {1, 2, 3}
    assert {point["c"] for point in points} == {"a", "b"}


UP = [{"metricId": "m", "goal": "MAXIMIZE"}]


def test_a_thousand_trials_are_no_burden() -> None:
    child = when("parentCategoricalValues", ["b"], integer(0, 5, name="below"))
    found = space(
        double(0.01, 1, "UNIT_REVERSE_LOG_SCALE"), integer(1, 9), discrete(0.5, 1.5, 8),
        categorical("a", "b", conditionalParameterSpecs=[child]),
    )  # fmt: skip
    values = suggest(found, UP, [], "s")
    trials = [
        TrialRecord("1", n, str(n), "", values, TrialState.SUCCEEDED,
                    measurement=Measurement(1, {"m": float(n)}))
        for n in range(1000)
    ]  # fmt: skip
    assert suggest(found, UP, trials, "t")


def test_optuna_is_loaded_only_when_a_study_needs_it() -> None:
    code = "import sys, localgcp.tuning.service; print('optuna' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


#: A start after every report: nothing has elapsed.
LATER = 1e12
TWO = [*UP, {"metricId": "k", "goal": "MINIMIZE"}]


def lines(*reports: Any) -> bytes:
    return b"".join(json.dumps(report).encode() + b"\n" for report in reports)


def report(step: int, **metrics: Any) -> dict[str, Any]:
    """A line as the package cloudml-hypertune writes it."""
    values = {name: str(value) for name, value in metrics.items()}
    rest = {"timestamp": 1.5, "trial": "1", "checkpoint_path": ""}
    return {**rest, **values, "global_step": str(step)}


def read(
    folder: Path, data: bytes, metrics: list[dict[str, str]] = UP, *, best: bool = False
) -> Report:
    file = folder / "metrics"
    file.write_bytes(data)
    return read_report(file, metrics, best=best, began=LATER)


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ([1, 3, 5], 3),
        ([1, 2, 4], 2),
        ([2, 1, 4], 2),
        ([5, 4], 4),  # none before it: the last that was reported
    ],
)
def test_another_metric_counts_at_the_step_or_at_the_last_before_it(
    tmp_path: Path, steps: list[int], value: int
) -> None:
    data = lines(*(report(step, k=step) for step in steps), report(3, m=1))
    assert read(tmp_path, data, TWO).measurement == Measurement(3, {"m": 1, "k": value})


@pytest.mark.parametrize(("bytes_more", "read_of_it"), [(0, True), (1, False)])
def test_a_line_and_the_end_of_a_file_that_are_read_have_a_bound(
    tmp_path: Path, bytes_more: int, read_of_it: bool
) -> None:
    first = b'{"m": 1}\n'
    padding = b"\n" * ((1 << 20) - len(first) + bytes_more)
    assert bool(read(tmp_path, first + padding).measurement) is read_of_it
    line = b'{"m": 1}' + b" " * ((1 << 16) - 8 + bytes_more)
    assert bool(read(tmp_path, line).measurement) is read_of_it


@pytest.mark.parametrize(
    ("reports", "rest"),
    [
        ([{name: 1 for name in "gfedcba"}], " but of a, b, c, d, e"),
        ([{"n" * 41: 1}], f" but of {'n' * 40}"),
        ([{"m": "x" * 41, "other": 1}], f" but {'x' * 40}, which is not a finite number"),
        ([{"timestamp": 1, "trial": 1, "global_step": 1, "checkpoint_path": ""}, 1],
         "; 1 lines of the file are not JSON objects"),
        ([{}], ""),
    ],
)  # fmt: skip
def test_why_a_metric_is_missing_is_told_in_few_words(
    tmp_path: Path, reports: list[Any], rest: str
) -> None:
    text = f"the trial reported no value of the metric 'm'{rest}"
    assert read(tmp_path, lines(*reports)) == Report(None, text)


def test_good_reports_count_beside_bad_lines(tmp_path: Path) -> None:
    data = b"garbage\n" + lines(report(1, m=0.5), report(2, m="nan")) + b'{"m": "0.9", "glo'
    assert read(tmp_path, data).measurement == Measurement(1, {"m": 0.5})


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


STATES = {"S": TrialState.SUCCEEDED, "F": TrialState.INFEASIBLE, "A": TrialState.ACTIVE}


def job(trials: int, parallel: int, failed: int = 0) -> TuningRecord:
    request = {"maxTrialCount": trials, "parallelTrialCount": parallel}
    request |= {"maxFailedTrialCount": failed} if failed else {}
    return TuningRecord(
        *("1", "p", "2", "r", "name", {}, request, JobState.RUNNING),
        *("t", None, None, "t", None, None),
    )


def rows(states: str) -> list[TrialRecord]:
    """Trials that ended one after the other."""
    return [
        TrialRecord(
            *("1", number, str(number), "", {}, STATES[state]),
            infeasible_reason=f"broken {number}",
            end_time=f"2026-01-01T00:00:0{number}Z",
        )
        for number, state in enumerate(states, 1)
    ]


@pytest.mark.parametrize(
    ("tuning", "trials", "points", "failure", "done"),
    [
        (job(2, 2), "SA", None, "", False),
        (job(4, 2), "SFSS", None, "", True),
        (job(2, 2), "SF", None, "1 of 2 trials failed. Trial 2: broken 2", True),
        (job(2, 2, failed=3), "FF", None, "All trials failed.", True),
        (job(9, 2), "FA", None, "The first trial failed: broken 1", False),
        (job(9, 2, failed=2), "FF", None,
         "2 trials failed, which reaches maxFailedTrialCount (2). Trial 2: broken 2", True),
    ],
)  # fmt: skip
def test_a_job_is_done_or_fails_by_its_trials(
    tuning: TuningRecord, trials: str, points: int | None, failure: str, done: bool
) -> None:
    step = next_step(tuning, rows(trials), points=points or tuning.max_trials, room=9)
    assert step == Progress(0, failure, done)
