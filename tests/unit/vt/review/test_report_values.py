"""Fields of a report by the plan that it is of: where it is, what was told, what is elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.unit.vt.review import plans
from vertex_training_cli.review import report
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

FIREWALL = "gcp:compute/firewall:Firewall"


def review(*told: plans.Event, **more: Any) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", **more)


def test_outcomes_are_exit_codes() -> None:
    assert {each.name: int(each) for each in ReviewOutcome} == {
        "CLEAN": 0, "FAILED": 1, "FORBIDDEN": 3, "OVER_LIMIT": 4, "DIFFERENT": 5,
    }  # fmt: skip


RULE = {"direction": "INGRESS", "allows": [{"protocol": "tcp"}], "sourceRanges": ["10.0.0.0/8"]}


def test_what_only_closes_is_not_risky() -> None:
    found = dataclasses.replace(review(plans.delete(FIREWALL, "f", **RULE)), destroyed=())
    assert [each.verb for each in found.reachability] == ["closes"]
    assert not found.risky
