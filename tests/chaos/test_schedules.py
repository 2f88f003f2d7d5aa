"""Tests a sample of the schedules of a year; ``make chaos PART=schedule`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.sample import quick_report

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_kills_leave_one_job_and_folder_for_each_week(tmp_path: Path) -> None:
    report = quick_report("schedule", tmp_path)["details"]
    virtual, killed = report["schedules, missed slots: all"], report["schedules, kills"]
    assert (virtual["jobs"], virtual["folders"], virtual["problems"]) == (52, 52, [])
    assert (killed["jobs"], killed["folders"], killed["problems"]) == (6, 6, [])
    assert killed["calls"] == 4
