"""What counts as a difference between a run and its rehearsal."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vertex_training_cli.verify.comparison import Comparison, Difference, compare, follows, read
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


ORDER = "rehearsed PENDING → RUNNING → SUCCEEDED"


@pytest.mark.parametrize(
    ("step", "subject", "aspects", "details"),
    [
        ("job", "job first", {"states": ["PENDING", "FAILED"]},
         (f"states: PENDING → FAILED, {ORDER}",)),
        ("job", "job first", {"states": ["PENDING", "PAUSED", "RUNNING", "SUCCEEDED"]},
         (f"states: PENDING → PAUSED → RUNNING → SUCCEEDED, {ORDER}",)),
        ("job", "job first", {"states": ["RUNNING", "PENDING", "SUCCEEDED"]},
         (f"states: RUNNING → PENDING → SUCCEEDED, {ORDER}",)),
        ("job", "job first", {"states": ["PENDING", "RUNNING"]},
         (f"states: PENDING → RUNNING, {ORDER}",)),
        ("job", "job first", {"states": ["SUCCEEDED", "SUCCEEDED"]},
         (f"states: SUCCEEDED → SUCCEEDED, {ORDER}",)),
        ("job", "job first", {"states": []}, (f"states: , {ORDER}",)),
        ("job", "job first", {"states": None}, (f"states: , {ORDER}",)),
        ("job", "job first", {"fields": ["name: text", "x: map", "a: map"]},
         ("fields, not rehearsed: a: map; x: map",)),
        ("job", "job first", {"fields": ["x: map"]},
         ("fields, not rehearsed: x: map", "fields, missing: name: text")),
        ("job", "job first", {"seconds until it ran": 60.6},
         ("seconds until it ran: 61 s, rehearsed 10 s",)),
        ("up", "call GET b/x", {"refused": ["403"]}, ("refused, not rehearsed: 403",)),
        ("up", "call GET b/y", {"refused": ["404"]}, ("refused, not rehearsed: 404",)),
        ("up", "lost answers", {"errors": ["get: UNAVAILABLE"]},
         ("errors, not rehearsed: get: UNAVAILABLE",)),
        ("drift", "result", {"differences": ["update T"]},
         ("differences, not rehearsed: update T",)),
        ("drift", "result", {"outcome": "DRIFTED", "new jobs": 0},
         ("outcome: DRIFTED, rehearsed CLEAN", "new jobs: 0, rehearsed none")),
        ("drift", "result", {"outcome": ""}, ("outcome: none, rehearsed CLEAN",)),
    ],
)  # fmt: skip
def test_what_was_not_rehearsed_is_one_difference(
    step: str, subject: str, aspects: dict[str, Any], details: tuple[str, ...]
) -> None:
    assert compare(REHEARSED, changed(step, subject, **aspects)) == Comparison(
        (Difference(step, subject, details),), ()
    )


@pytest.mark.parametrize(
    ("step", "subject", "aspects"),
    [
        ("job", "job first", {"states": ["PENDING", "SUCCEEDED"]}),
        ("job", "job first", {"seconds until it ran": 60.0}),
        ("job", "job first", {"seconds until it ran": None}),
        ("job", "job first", {"seconds that it ran": 1000.0}),
        ("job", "job first", {"fields": []}),
        ("up", "result", {"seconds": 90.0}),
        ("up", "call GET b/y", {"refused": [], "fields": ["etag: text"]}),
    ],
)
def test_a_missed_poll_a_quick_step_and_a_right_that_is_there_are_no_differences(
    step: str, subject: str, aspects: dict[str, Any]
) -> None:
    assert compare(REHEARSED, changed(step, subject, **aspects)) == Comparison((), ())


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
    "subject", ["resource gcp:kms/cryptoKey:CryptoKey", "call GET c", "job second", "asked keys: c"]
)
def test_what_only_another_stack_file_has_is_not_compared(subject: str) -> None:
    run = changed("up", subject, operations=["create"])
    assert compare(REHEARSED, run) == Comparison((), (f"up: {subject}",))
    assert compare(run, REHEARSED) == Comparison((), (f"up: {subject}",))


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


@pytest.mark.parametrize(
    ("document", "steps"),
    [
        ({"version": 1, "steps": {"up": {}}}, {"up": {}}),
        ({"version": 2, "steps": {"up": {}}}, None),
        ({"version": 1, "steps": []}, None),
        ({"version": 1}, None),
        ({"steps": {}}, None),
    ],
)
def test_a_rehearsal_is_read_if_it_has_steps_of_this_version(
    document: dict[str, Any], steps: dict[str, Any] | None
) -> None:
    if steps is not None:
        assert read(document) == steps
        return
    with pytest.raises(ValueError, match=r"^it has no steps of this version$"):
        read(document)


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
