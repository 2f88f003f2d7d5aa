"""What is opened to everybody, and what reaches anywhere: newly, and not what was so before."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.reachability import opened_egress, opened_to_everybody

FIREWALL = "gcp:compute/firewall:Firewall"
TCP = [{"protocol": "tcp", "ports": ["22"]}]
CLOSED = {"name": "acme-data", "publicAccessPrevention": "enforced"}


def rule(direction="INGRESS", **more):
    return {"direction": direction, "allows": TCP, **more}


@pytest.mark.parametrize(
    ("inputs", "public", "egress"),
    [
        (rule(sourceRanges=["0.0.0.0/0"]), ("firewall r",), ()),
        (rule(sourceRanges=["10.0.0.0/8", "::/0"]), ("firewall r",), ()),
        (rule(), ("firewall r",), ()),
        (rule(sourceTags=["workers"]), (), ()),
        (rule(sourceRanges=["10.0.0.0/8"]), (), ()),
        (rule(sourceRanges=["0.0.0.0/0"], disabled=True), (), ()),
        ({"direction": "INGRESS", "denies": TCP, "sourceRanges": ["0.0.0.0/0"]}, (), ()),
        (rule("EGRESS", destinationRanges=["0.0.0.0/0"]), (), ("r",)),
        (rule("EGRESS"), (), ("r",)),
        (rule("EGRESS", destinationRanges=["10.0.0.0/8"]), (), ()),
    ],
)
def test_a_firewall_rule_is_open_by_its_ranges(inputs, public, egress):
    plan = plans.plan(plans.create(FIREWALL, "r", **inputs))
    assert (opened_to_everybody(plan), opened_egress(plan)) == (public, egress)


def test_what_was_open_before_is_not_new():
    was = rule("EGRESS", destinationRanges=["0.0.0.0/0"])
    plan = plans.plan(
        plans.step("update", FIREWALL, "out", was, was | {"priority": 7}),
        plans.step("update", FIREWALL, "in", rule(), rule(priority=7)),
    )
    assert opened_to_everybody(plan) == opened_egress(plan) == ()


@pytest.mark.parametrize(
    "who", ["allUsers", "allAuthenticatedUsers", "principalSet://goog/public:all"]
)
def test_a_bucket_that_may_be_opened_and_one_that_is(who):
    member = plans.member("acme-data", who=who)
    plan = plans.plan(
        plans.step("update", plans.BUCKET, "storage-data", CLOSED, {"name": "acme-data"}),
        plans.create(plans.MEMBER, "public", **member),
    )
    prevention = "bucket acme-data (no public access prevention)"
    assert opened_to_everybody(plan) == ("bucket acme-data", prevention)


def test_closing_opens_nothing():
    member = plans.member("acme-data", who="allAuthenticatedUsers")
    plan = plans.plan(
        plans.step("update", plans.BUCKET, "storage-data", {"name": "acme-data"}, CLOSED),
        plans.delete(plans.MEMBER, "public", **member),
    )
    assert opened_to_everybody(plan) == ()


def test_the_verdict_names_what_everybody_reaches_before_what_some_do():
    plan = plans.plan(
        plans.create(plans.JOB, "training-a", **plans.job("a", enableWebAccess=True)),
        plans.create(plans.MEMBER, "public", **plans.member("data", who="allUsers")),
    )
    assert verdict(report.build(plan, source="here")) == (
        "1 job submitted; at most $0.22; 1 right gained, 0 lost; nothing destroyed; "
        "opened to everybody: bucket data; a shell into the machines of: a."
    )
