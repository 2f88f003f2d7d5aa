"""Tests a sample of the ladder kills; ``make chaos PART=ladder`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_kills_submit_each_rung_once_and_in_order(tmp_path: Path) -> None:
    report = quick_report("ladder", tmp_path)
    assert min(report["details"]["ladders, state machine"]["sent"]) > 3
    found = report["details"]["ladders, kills"]
    assert found["problems"] == []
    assert found["kills"] >= 5
