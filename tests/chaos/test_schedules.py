"""A sample of the years of schedules; ``make chaos PART=schedule`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_52_weeks_are_52_jobs_and_52_folders_whatever_is_killed(tmp_path: Path) -> None:
    report = quick_report("schedule", tmp_path)["details"]
    virtual, killed = report["schedules, missed slots: all"], report["schedules, kills"]
    assert (virtual["jobs"], virtual["folders"], virtual["problems"]) == (52, 52, [])
    assert (killed["jobs"], killed["folders"], killed["problems"]) == (6, 6, [])
    assert killed["calls"] == 4
