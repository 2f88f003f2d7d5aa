"""Tests a sample of the snapshot kills; ``make chaos PART=snapshots`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_killed_snapshot_has_one_query_export_and_manifest(
    tmp_path: Path,
) -> None:
    report = quick_report("snapshots", tmp_path)
    found = report["details"]["snapshots, kills"]
    assert (found["points"], found["problems"]) == (6, [])
    assert found["kills"] >= 6
