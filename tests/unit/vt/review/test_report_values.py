"""Fields of a report by the plan that it is of: where it is, what was told, what is elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import Problem
from vertex_training_cli.engine import events
from vertex_training_cli.review import digest, report
from vertex_training_cli.review.report import ResourceChange, ReviewOutcome, ReviewReport

ALERT = "gcp:monitoring/alertPolicy:AlertPolicy"
FIREWALL = "gcp:compute/firewall:Firewall"
NETWORK = "gcp:compute/network:Network"
OTHER = "gcp:x/y:Z"
WRONG = Problem("wrong", "x", rule="image-missing")


def review(*told: plans.Event, **more: Any) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", **more)


def test_outcomes_are_exit_codes() -> None:
    assert {each.name: int(each) for each in ReviewOutcome} == {
        "CLEAN": 0, "FAILED": 1, "FORBIDDEN": 3, "OVER_LIMIT": 4, "DIFFERENT": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("config", "project", "region"),
    [
        ({"gcp:project": "acme-ml-dev", "gcp:region": "us-east1"}, "acme-ml-dev", "us-east1"),
        ({"gcp:zone": "us-east1-b"}, "", ""),
    ],
)
def test_a_report_is_of_a_place(config: dict[str, str], project: str, region: str) -> None:
    plan = events.parse(plans.lines(config=config), "dev")
    found = report.build(plan, source="here", expected="0" * 64)
    assert (found.stack, found.project, found.region) == ("dev", project, region)
    assert (found.source, found.expected, found.preflight) == ("here", "0" * 64, "")
    assert found.digest == digest.plan_digest(plan)


def test_what_the_engine_says_is_apart_by_its_severity() -> None:
    told = [plans.said(severity, f"{severity} {n}") for n in (1, 2)
            for severity in ("info", "warning", "error", "debug")]  # fmt: skip
    found = review(*told, plans.summary("failed", b="1", a="2"))
    assert [
        [each.message for each in part] for part in (found.notes, found.warnings, found.errors)
    ] == [[f"{severity} {n}" for n in (1, 2)] for severity in ("info", "warning", "error")]
    assert found.packs == ("a", "b")
    with_problems = review(*told, plans.summary("failed"), problems=[WRONG])
    assert (with_problems.errors, with_problems.problems) == ((), (WRONG,))


def test_policies_are_counted_once_though_they_found_something() -> None:
    urn = "urn:pulumi:dev::vertex-training::x:y:Z::n"
    told = [
        plans.violation(name, "advisory", what, urn)
        for name, what in (("p", "m"), ("q", "m"), ("p", "more"))
    ]
    found = review(*told, plans.summary(guardrails="1"))
    assert (found.policies, len(found.violations), found.forbidding) == (2, 3, ())
    forbidden = review(plans.violation("p", "mandatory", "m", urn))
    assert [each.policy for each in forbidden.forbidding] == ["p"]


RULE = {"direction": "INGRESS", "allows": [{"protocol": "tcp"}], "sourceRanges": ["10.0.0.0/8"]}


@pytest.mark.parametrize(
    ("event", "risky"),
    [
        (plans.create(plans.MEMBER, "m", **plans.member("data")), True),
        (plans.delete(plans.MEMBER, "m", **plans.member("data")), False),
        (plans.delete(OTHER, "n", x=1), True),
        (plans.create(FIREWALL, "f", **RULE), True),
        (plans.step("update", FIREWALL, "f", RULE, RULE | {"priority": 5}), True),
        (plans.step("update", OTHER, "n", {"x": 1}, {"x": 2}), False),
        (plans.create(OTHER, "n", x=1), False),
        (plans.step("same", plans.BUCKET, "b", {"name": "b"}, {"name": "b"},
                    protect=(True, False)), True),
    ],
)  # fmt: skip
def test_a_change_is_risky_that_opens_grants_or_destroys(event: plans.Event, risky: bool) -> None:
    assert review(event).risky is risky


def test_what_only_closes_is_not_risky() -> None:
    found = dataclasses.replace(review(plans.delete(FIREWALL, "f", **RULE)), destroyed=())
    assert [each.verb for each in found.reachability] == ["closes"]
    assert not found.risky


@pytest.mark.parametrize(
    ("outcome", "after"),
    [
        (ReviewOutcome.CLEAN, ReviewOutcome.FAILED),
        (ReviewOutcome.DIFFERENT, ReviewOutcome.FAILED),
        (ReviewOutcome.FORBIDDEN, ReviewOutcome.FORBIDDEN),
        (ReviewOutcome.OVER_LIMIT, ReviewOutcome.OVER_LIMIT),
        (ReviewOutcome.FAILED, ReviewOutcome.FAILED),
    ],
)
def test_an_image_that_cannot_be_run_forbids_what_nothing_else_did(
    outcome: ReviewOutcome, after: ReviewOutcome
) -> None:
    other = Problem("first", "y")
    before = dataclasses.replace(review(), outcome=outcome, problems=(other,))
    found = report.with_images(before, [WRONG], ["u"], {"i": "commit 1"})
    assert found == dataclasses.replace(
        before, outcome=after, problems=(other, WRONG), unseen_images=("u",),
        origins={"i": "commit 1"},
    )  # fmt: skip
    assert report.with_images(before, [], [], {}) == before


def test_everything_else_is_what_no_other_part_has_by_operation_and_name() -> None:
    old, new = {"x": 1}, {"x": 2}
    found = review(
        plans.step("update", OTHER, "z", old, new),
        plans.step("update", OTHER, "a", old, new),
        plans.create(OTHER, "n", x=1),
        plans.create(ALERT, "new-alert", displayName="a"),
        plans.step("update", ALERT, "alert", {"displayName": "a"}, {"displayName": "b"}),
        plans.delete(OTHER, "gone", x=1),
        plans.delete("gcp:projects/service:Service", "api", disableOnDestroy=False),
        plans.create(NETWORK, "net", name="n"),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
        plans.create(plans.JOB, "training-a", **plans.job("a")),
        plans.step("same", OTHER, "kept", old, old),
    )
    assert [(each.op, each.name) for each in found.changes] == [
        ("create", "n"), ("forget", "api"), ("update", "a"), ("update", "alert"), ("update", "z"),
    ]  # fmt: skip
    assert found.unchanged == 1
    assert [each.name for each in found.destroyed] == ["gone"]


def test_a_change_of_the_cloud_alone_is_told_by_its_properties() -> None:
    event = plans.step("update", OTHER, "n", {"x": 1}, {"x": 1}, detailedDiff={"size": {}})
    [found] = review(event).changes
    assert found == ResourceChange("update", "n", OTHER, (), ("size",))
    both = plans.step("update", OTHER, "n", {"x": 1}, {"x": 2}, detailedDiff={"size": {}})
    [found] = review(both).changes
    assert ([each.path for each in found.differences], found.paths) == (["x"], ())
