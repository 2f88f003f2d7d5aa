"""What a job ran on in place of what it asked for is kept, and told."""

from __future__ import annotations

import stat

from localgcp.home import Home
from localgcp.runner import substitutes


def test_the_nearest_version_is_taken_while_it_is_asked_for(home: Home) -> None:
    assert substitutes.takes_nearest(home) is False
    for on in (True, True, False, False):
        substitutes.take_nearest(home, on=on)
        assert substitutes.takes_nearest(home) is on
    substitutes.take_nearest(home, on=True)
    assert stat.S_IMODE(home.nearest_images.stat().st_mode) == 0o600


def test_a_state_is_told_with_what_the_job_ran_on() -> None:
    assert substitutes.marked("SUCCEEDED", []) == "SUCCEEDED"
    assert substitutes.marked("FAILED", ["on a", "on b"]) == "FAILED (on a; on b)"
