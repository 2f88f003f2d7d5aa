"""Tests a sample of kills of models and endpoints; ``make chaos PART=serving`` has 200."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_killed_endpoint_changes_lose_no_request(tmp_path: Path) -> None:
    report = quick_report("serving", tmp_path)
    assert report["problems"] == []
    details = report["details"]
    assert details["serving, random kills"]["kills"] >= 4
    for part in ("serving, random kills", "serving, 2 concurrent operators"):
        assert details[part]["looks"] > 100
        assert details[part]["answered"] > 20
