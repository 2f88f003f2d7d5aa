"""What is opened to everybody, and what reaches anywhere: newly, and not what was so before."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training_cli.review.reachability import opened_egress, opened_to_everybody

FIREWALL = "gcp:compute/firewall:Firewall"
TCP = [{"protocol": "tcp", "ports": ["22"]}]


def rule(direction="INGRESS", **more):
    return {"direction": direction, "allows": TCP, **more}


def test_what_was_open_before_is_not_new():
    was = rule("EGRESS", destinationRanges=["0.0.0.0/0"])
    plan = plans.plan(
        plans.step("update", FIREWALL, "out", was, was | {"priority": 7}),
        plans.step("update", FIREWALL, "in", rule(), rule(priority=7)),
    )
    assert opened_to_everybody(plan) == opened_egress(plan) == ()
