"""A request as the rules read it: what is there, what the service takes where nothing is."""

from __future__ import annotations

import pytest

from vertex_training.customjob.rules.job import Job


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ("SPOT", "SPOT"), ("LOW_COST", "SPOT"), ("FLEX_START", "FLEX_START"),
        ("STANDARD", "STANDARD"), ("ON_DEMAND", "STANDARD"), ("STRATEGY_UNSPECIFIED", "STANDARD"),
    ],
)  # fmt: skip
def test_a_strategy_has_one_name(given: str, strategy: str) -> None:
    assert Job({"jobSpec": {"scheduling": {"strategy": given}}}).strategy == strategy
