"""The engine's events become a plan."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events


def test_an_error_makes_a_preview_a_failed_one_whatever_its_summary_says() -> None:
    assert plans.plan().succeeded
    assert not plans.plan(plans.said("error", "no")).succeeded
    assert not plans.plan(plans.summary("failed")).succeeded
    assert not events.parse(plans.lines()[:-1], "dev").succeeded  # cut off before the summary
