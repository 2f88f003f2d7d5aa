"""The thread that drives tuning jobs: when it looks, what it survives, and how it ends."""

from __future__ import annotations

from localgcp.vertex.records import JobState
from tests.unit.localcloud.tuning.test_driver import Studied, studied

__all__ = ["studied"]


def test_a_server_settles_trials_that_ended_without_one(studied: Studied) -> None:
    studied.make(trials=1)
    studied.driver.advance()
    studied.table.move(studied.id, JobState.FAILED)
    studied.end(1, 0.5)
    studied.driver.start()
    studied.driver.stop()
    assert studied.states() == ["SUCCEEDED"]
