"""Restarts and retries, as the service documents them."""

from __future__ import annotations

import pytest

from localgcp.runner.gang.life_cycle import (
    JOB_RETRIES,
    PREEMPTIONS,
    WORKER_RESTARTS,
    Action,
    End,
    LifeCycle,
)

CHIEF, WORKER, OTHER = "workerpool0-0", "workerpool1-0", "workerpool1-1"


def life(**scheduling: bool) -> LifeCycle:
    return LifeCycle.of(CHIEF, scheduling)


def test_a_worker_that_is_done_leaves_the_others_running() -> None:
    assert life().decide([End(WORKER, 0)]).action is Action.CONTINUE


def test_a_killed_replica_restarts_five_times_and_then_the_job_three_times() -> None:
    one = life()
    actions = [one.decide([End(WORKER, 137)]).action for _ in range(24)]
    round_ = [Action.RESTART_REPLICAS] * WORKER_RESTARTS
    assert actions == [*[*round_, Action.RETRY_JOB] * JOB_RETRIES, *round_, Action.FAIL]


@pytest.mark.parametrize("code", [6, 137, 1])
def test_disable_retries_makes_the_first_failure_the_last(code: int) -> None:
    one = life(disableRetries=True, restartJobOnWorkerRestart=True)
    assert one.decide([End(WORKER, code)]).action is Action.FAIL
    assert one.preempt([CHIEF]).stockout


def test_the_service_restarts_five_times_retries_three_times_and_preempts_six_times() -> None:
    assert (WORKER_RESTARTS, JOB_RETRIES, PREEMPTIONS) == (5, 3, 6)
