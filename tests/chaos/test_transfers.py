"""Tests a sample of kills of ``vt data``; ``make chaos PART=data`` has 10,000 files and 2 GiB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_killed_transfers_leave_no_partial_file_and_lose_none(tmp_path: Path) -> None:
    report = quick_report("data", tmp_path)
    transfers = [what for what, _ in report["rows"] if what != "minutes"]
    assert [what.split()[0] for what in transfers] == ["push", "pull"] * 2
    assert report["problems"] == []
