"""What counts as a difference between a run and its rehearsal."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vertex_training_cli.verify.comparison import compare
from vertex_training_cli.verify.observations import (
    EventReader,
    error_text,
    job_aspects,
    normaliser,
    shape,
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


@pytest.mark.parametrize(
    ("step", "subject", "aspects", "words"),
    [
        ("job", "job first", {"states": ["PENDING", "FAILED"]}, "FAILED, rehearsed"),
        ("job", "job first", {"states": ["PENDING", "PAUSED", "RUNNING", "SUCCEEDED"]}, "PAUSED"),
        ("job", "job first", {"states": ["RUNNING", "PENDING", "SUCCEEDED"]}, "RUNNING → PENDING"),
        ("job", "job first", {"states": ["PENDING", "RUNNING"]}, "RUNNING, rehearsed"),
        ("job", "job first", {"fields": ["name: text", "x: map"]}, "fields, not rehearsed: x: map"),
        ("job", "job first", {"fields": ["x: map"]}, "fields, missing: name: text"),
        ("job", "job first", {"seconds until it ran": 61.0}, "61 s, rehearsed 10 s"),
        ("up", "call GET b/x", {"refused": ["403"]}, "refused, not rehearsed: 403"),
        ("up", "lost answers", {"errors": ["get: UNAVAILABLE"]}, "get: UNAVAILABLE"),
        ("drift", "result", {"differences": ["update T"]}, "not rehearsed: update T"),
        ("drift", "result", {"outcome": "DRIFTED"}, "outcome: DRIFTED, rehearsed CLEAN"),
    ],
)
def test_what_was_not_rehearsed_is_one_difference(
    step: str, subject: str, aspects: dict[str, Any], words: str
) -> None:
    [found] = compare(REHEARSED, changed(step, subject, **aspects)).differences
    assert (found.step, found.subject) == (step, subject)
    assert any(words in detail for detail in found.details), found.details


@pytest.mark.parametrize(
    ("step", "subject", "aspects"),
    [
        ("job", "job first", {"states": ["PENDING", "SUCCEEDED"]}),
        ("job", "job first", {"seconds until it ran": 59.0}),
        ("up", "result", {"seconds": 1.0}),
        ("up", "call GET b/y", {"refused": [], "fields": ["etag: text"]}),
    ],
)
def test_a_missed_poll_a_quick_step_and_a_right_that_is_there_are_no_differences(
    step: str, subject: str, aspects: dict[str, Any]
) -> None:
    assert compare(REHEARSED, changed(step, subject, **aspects)).differences == ()


def test_a_step_that_failed_is_one_difference_with_the_call_that_was_refused() -> None:
    run = changed("up", "result", failed=True, errors=["403: no"])
    run["up"]["call GET b/x"] = {"refused": ["403"]}
    del run["up"]["resource gcp:storage/bucket:Bucket"], run["job"], run["drift"]
    found = compare(REHEARSED, run)
    [difference] = found.differences
    assert (difference.subject, difference.details[0]) == ("failed", "403: no")
    assert "call GET b/x: refused, not rehearsed: 403" in difference.details
    assert {"job: not reached", "drift: not reached"} <= set(found.not_compared)


def test_what_only_another_stack_file_has_is_not_compared() -> None:
    run = changed("up", "resource gcp:kms/cryptoKey:CryptoKey", operations=["create"])
    found = compare(REHEARSED, run)
    assert found.differences == ()
    assert found.not_compared == ("up: resource gcp:kms/cryptoKey:CryptoKey",)


def test_observations_of_two_projects_are_the_same() -> None:
    def seen(project: str, number: str, job: str) -> tuple[str, set[str]]:
        normalise = normaliser({project: "PROJECT", number: "NUMBER"})
        text = f"googleapi: Error 403: projects/{number}/x of {project}-data, job {job}"
        return error_text(text, normalise), shape({"name": project, "labels": {project: "x"}})

    one = seen("acme-first", "210987654321", "1996655520904266349")
    assert one == seen("local-first", "785141681372", "5097985643164240045")
    assert one[0] == "403: googleapi: Error 403: projects/NUMBER/x of PROJECT-data, job N"


def test_events_give_shapes_and_errors_without_values_and_secrets() -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
    bucket = {"type": "gcp:storage/bucket:Bucket", "op": "create"}
    reader = EventReader(str)
    reader.add({"resOutputsEvent": {"metadata": {**bucket, "new": {"outputs": {"key": secret}}}}})
    reader.add({"resOpFailedEvent": {"metadata": bucket}})
    reader.add({"diagnosticEvent": {"severity": "error", "message": "Error 409: taken\n"}})
    reader.add({"diagnosticEvent": {"severity": "warning", "message": "using pulumi-x from P"}})
    assert reader.resources == {
        bucket["type"]: {"operations": ["create", "create failed"], "outputs": ["key: text"]}
    }
    assert reader.messages == {"errors": ["409: Error 409: taken"], "warnings": []}
    assert reader.changes == {f"create {bucket['type']}"}


def test_a_job_that_no_poll_saw_pending_was_pending_before_it_ran() -> None:
    times = {"createTime": "2026-11-24T10:00:00Z", "startTime": "2026-11-24T10:00:30.5Z"}
    found = job_aspects([{"state": "JOB_STATE_RUNNING", **times}], str)
    assert found["states"] == ["PENDING", "RUNNING"]
    assert found["seconds until it ran"] == 30.5
