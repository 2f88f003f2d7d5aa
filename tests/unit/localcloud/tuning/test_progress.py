"""When trials are started, and when a tuning job is over."""

from __future__ import annotations

import dataclasses

import pytest

from localgcp.tuning.progress import Progress, next_step
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord
from localgcp.vertex.records import JobState

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
         "2 trials failed, as many as maxFailedTrialCount (2). Trial 2: broken 2", True),
    ],
)  # fmt: skip
def test_a_job_is_done_or_fails_by_its_trials(
    tuning: TuningRecord, trials: str, points: int | None, failure: str, done: bool
) -> None:
    assert next_step(tuning, rows(trials), points=points, room=9) == Progress(0, failure, done)


@pytest.mark.parametrize(
    ("tuning", "trials"), [(job(9, 2, failed=2), "FS"), (job(8, 2), "SFFF"), (job(7, 2), "SFFF")]
)
def test_fewer_failures_go_on(tuning: TuningRecord, trials: str) -> None:
    assert next_step(tuning, rows(trials), points=None, room=9).start > 0


def test_the_failure_that_is_told_is_the_last_in_time() -> None:
    trials = rows("SFFF")
    ends = [None, "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z", None]
    trials = [dataclasses.replace(each, end_time=at) for each, at in zip(trials, ends, strict=True)]
    found = next_step(job(6, 2), trials, points=None, room=9)
    assert found.failure == "3 of 6 trials failed. Trial 3: broken 3"
