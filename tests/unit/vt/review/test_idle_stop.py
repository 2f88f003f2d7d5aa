"""``idleStop`` in a review: when a job is cancelled, before and after."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.vt.review.plans import JOB
from tests.unit.vt.review.test_ladder import SMALL, inputs
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.review import jobs, sections


def change(before: str, after: str) -> jobs.JobChange:
    def side(rule: str) -> ResourceState:
        given = inputs(SMALL)
        given["options"] |= {"idleStop": rule} if rule else {}
        return ResourceState(given, {}, id="7")

    plan = Plan("dev", steps=(Step("update", "a::b::fell", JOB, side(before), side(after)),))
    [made] = jobs.job_changes(plan)
    return made


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("", "5% for 30m", "idle: 5% for 30m"),
        ("5% for 30m", "5% for 1h", "idle: 5% for 1h, before: 5% for 30m"),
        ("5% for 30m", "", "idle: no more, before: 5% for 30m"),
    ],
)
def test_a_rule_is_told_with_what_it_was(before: str, after: str, told: str) -> None:
    found = change(before, after)
    assert (found.idle_stop_before, found.idle_stop) == (before, after)
    report: Any = SimpleNamespace(
        jobs=[found], snapshots=(), not_observed="", submitted=(), prices_from=()
    )
    text = str(sections._jobs(report, lambda text, *_: text))
    assert told in text


def test_without_it_nothing_is_told() -> None:
    report: Any = SimpleNamespace(
        jobs=[change("", "")], snapshots=(), not_observed="", submitted=()
    )
    assert "idle" not in str(sections._jobs(report, lambda text, *_: text)).replace("idle_stop", "")
