"""The engine's events become a plan."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import EventParseError
from vertex_training_cli.engine import events


def test_a_replacement_is_one_step_though_the_engine_sends_three() -> None:
    job = plans.job("a")
    plan = plans.plan(
        plans.step("delete-replaced", plans.JOB, "training-a", old=job),
        plans.step("replace", plans.JOB, "training-a", old=job, new=job, keys=["request"]),
        plans.step("create-replacement", plans.JOB, "training-a", old=job, new=job),
    )
    assert [(step.op, step.keys) for step in plan.steps] == [("replace", ("request",))]


def test_what_an_earlier_run_left_to_delete_is_told() -> None:
    plan = plans.plan(plans.step("delete-replaced", plans.BUCKET, "storage-x", old={"name": "x"}))
    assert [step.op for step in plan.changed] == ["delete-replaced"]


def test_notes_of_the_engine_are_no_inputs() -> None:
    rules = [{"__defaults": [], "age": 7}]
    plan = plans.plan(plans.create(plans.BUCKET, "b", __defaults=["name"], lifecycleRules=rules))
    assert plan.steps[0].inputs == {"lifecycleRules": [{"age": 7}]}


def test_values_that_are_secret_unknown_or_files_are_words() -> None:
    plan = plans.plan(
        plans.create(
            plans.BUCKET,
            "b",
            secret={
                "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
                "value": "hunter2",
            },
            later="04da6b54-80e4-46f7-96ec-b56ff0331ba9",
            file={
                "4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17",
                "hash": "ab" * 32,
                "path": "/a/place/of/this/machine",
            },
        )
    )
    assert plan.steps[0].inputs == {
        "secret": "[secret]",
        "later": "[known after apply]",
        "file": "[file sha256:abababababababab]",
    }


@pytest.mark.parametrize("where", ["input", "diagnostic", "policy", "config"])
def test_what_looks_like_a_token_is_shown_nowhere(where: str) -> None:
    token = "hf_" + "a1B2" * 10
    told = {
        "input": plans.create(plans.JOB, "j", request=json.dumps({"x": token})),
        "diagnostic": plans.said("error", f"denied: {token}"),
        "policy": plans.violation("no-secret", "mandatory", f"found {token}"),
        "config": {"preludeEvent": {"config": {"x:y": token}}},
    }[where]
    assert token not in repr(plans.plan(told))
    assert "[secret]" in repr(plans.plan(told))


def test_diagnostics_lose_debugging_and_repetition() -> None:
    plan = plans.plan(
        plans.said("debug", "registering"),
        plans.said("warning", "using pulumi-resource-gcp from $PATH at /x"),
        plans.said("info#err", "told by the program"),
        plans.said("warning", "twice"),
        plans.said("warning", "twice"),
    )
    assert [(d.severity, d.message) for d in plan.diagnostics] == [
        ("info", "told by the program"),
        ("warning", "twice"),
    ]


def test_an_error_makes_a_preview_a_failed_one_whatever_its_summary_says() -> None:
    assert plans.plan().succeeded
    assert not plans.plan(plans.said("error", "no")).succeeded
    assert not plans.plan(plans.summary("failed")).succeeded
    assert not events.parse(plans.lines()[:-1], "dev").succeeded  # cut off before the summary


def test_policies_that_looked_are_counted_also_when_they_found_nothing() -> None:
    looked = {"resourceUrn": "u", "policyPackName": "acme", "policyPackVersion": "1"}
    plan = plans.plan(
        {"policyAnalyzeSummaryEvent": {**looked, "passed": ["a", "b"]}},
        {"policyAnalyzeSummaryEvent": {**looked, "passed": ["b"], "failed": ["c"]}},
    )
    assert (plan.policies, plan.packs) == (frozenset("abc"), {"acme": "1"})


def test_a_line_that_is_no_event_is_refused() -> None:
    with pytest.raises(EventParseError, match="steps"):
        events.parse(['{"steps": []}'], "dev")
    with pytest.raises(EventParseError):
        events.parse(["Previewing update"], "dev")


def test_a_violation_names_its_policy_and_its_pack() -> None:
    [found] = plans.plan(plans.violation("bucket-closed", "mandatory", "open", "u::b")).violations
    assert (found.policy, found.pack, found.level) == ("bucket-closed", "acme", "mandatory")
    assert (found.message, found.urn) == ("open", "u::b")
