"""What counts as a difference between a run and its rehearsal."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vertex_training_cli.verify.comparison import Comparison, Difference, compare, follows
from vertex_training_cli.verify.observations import (
    job_aspects,
)

REHEARSED: dict[str, Any] = {
    "up": {
        "result": {"seconds": 20.0},
        "resource gcp:storage/bucket:Bucket": {"operations": ["create"], "outputs": ["name: text"]},
        "call GET b/x": {"fields": ["etag: text"]},
        "call GET b/y": {"refused": ["403"]},
    },
    "job": {
        "result": {},
        "job first": {
            "states": ["PENDING", "RUNNING", "SUCCEEDED"],
            "fields": ["name: text"],
            "seconds until it ran": 10.0,
        },
    },
    "drift": {"result": {"outcome": "CLEAN", "differences": []}},
}


def changed(step: str, subject: str, **aspects: Any) -> dict[str, Any]:
    run = copy.deepcopy(REHEARSED)
    run[step].setdefault(subject, {}).update(aspects)
    return run


def test_a_run_as_rehearsed_has_no_difference() -> None:
    assert compare(REHEARSED, copy.deepcopy(REHEARSED)).differences == ()


ORDER = "rehearsed PENDING → RUNNING → SUCCEEDED"


@pytest.mark.parametrize(
    ("step", "subject", "aspects", "details"),
    [
        ("job", "job first", {"states": ["PENDING", "FAILED"]},
         (f"states: PENDING → FAILED, {ORDER}",)),
        ("job", "job first", {"states": []}, (f"states: , {ORDER}",)),
        ("job", "job first", {"states": None}, (f"states: , {ORDER}",)),
        ("job", "job first", {"fields": ["name: text", "x: map", "a: map"]},
         ("fields, not rehearsed: a: map; x: map",)),
        ("job", "job first", {"seconds until it ran": 60.6},
         ("seconds until it ran: 61 s, rehearsed 10 s",)),
        ("drift", "result", {"outcome": "DRIFTED", "new jobs": 0},
         ("outcome: DRIFTED, rehearsed CLEAN", "new jobs: 0, rehearsed none")),
    ],
)  # fmt: skip
def test_what_was_not_rehearsed_is_one_difference(
    step: str, subject: str, aspects: dict[str, Any], details: tuple[str, ...]
) -> None:
    assert compare(REHEARSED, changed(step, subject, **aspects)) == Comparison(
        (Difference(step, subject, details),), ()
    )


def test_a_step_that_failed_is_one_difference_with_the_call_that_was_refused() -> None:
    run = changed("up", "result", failed=True, errors=["403: no", "again"])
    run["up"]["call GET b/x"] = {"refused": ["403"]}
    run["extra"] = {"result": {}}
    del run["up"]["resource gcp:storage/bucket:Bucket"], run["job"], run["drift"]
    assert compare(REHEARSED, run) == Comparison(
        (
            Difference(
                "up", "failed", ("403: no", "again", "call GET b/x: refused, not rehearsed: 403")
            ),
        ),
        (
            "up: resource gcp:storage/bucket:Bucket",
            "job: not reached",
            "drift: not reached",
            "extra: not rehearsed",
        ),
    )


@pytest.mark.parametrize(
    ("states", "rehearsed", "is_right"),
    [
        ([], [], True),
        *((["A", "B"], ["A", state, "B"], True) for state in (
            "QUEUED", "PENDING", "RUNNING", "CANCELLING")),
        *((["A", "B"], ["A", state, "B"], False) for state in ("PAUSED", "FAILED", "SUCCEEDED")),
        (["A", "B"], ["A", "B", "RUNNING"], True),
        (["A", "B"], ["A", "B", "PAUSED"], False),
        (["A", "A"], ["A"], False),
        (["A"], [], False),
    ],
)  # fmt: skip
def test_states_that_pass_by_may_be_left_out_and_no_others(
    states: list[str], rehearsed: list[str], is_right: bool
) -> None:
    assert follows(states, rehearsed) is is_right


def test_a_job_that_no_poll_saw_pending_was_pending_before_it_ran() -> None:
    times = {"createTime": "2026-11-24T10:00:00Z", "startTime": "2026-11-24T10:00:30.5Z"}
    found = job_aspects([{"state": "JOB_STATE_RUNNING", **times}], str)
    assert found["states"] == ["PENDING", "RUNNING"]
    assert found["seconds until it ran"] == 30.5
