"""A sample of the kills of ``vt data``; ``make chaos PART=data`` has 10,000 files and 2 GiB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_nothing_is_half_there_after_kills_and_nothing_that_arrived_is_lost(tmp_path: Path) -> None:
    report = quick_report("data", tmp_path)
    transfers = [what for what, _ in report["rows"] if what != "minutes"]
    assert [what.split()[0] for what in transfers] == ["push", "pull"] * 2
    assert report["problems"] == []
