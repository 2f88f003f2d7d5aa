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


def test_the_primary_replicas_success_is_the_jobs_whatever_the_others_do() -> None:
    assert life().decide([End(WORKER, 1), End(CHIEF, 0)]).action is Action.SUCCEED


def test_a_worker_that_is_done_leaves_the_others_running() -> None:
    assert life().decide([End(WORKER, 0)]).action is Action.CONTINUE


@pytest.mark.parametrize("name", [CHIEF, WORKER])
@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_an_error_of_the_code_is_permanent_on_any_replica(name: str, code: int) -> None:
    decision = life().decide([End(name, code)])
    assert (decision.action, decision.ends) == (Action.FAIL, (End(name, code),))


@pytest.mark.parametrize("code", [6, 134, 11, 139])
def test_a_crash_that_may_be_transient_retries_the_whole_job_three_times(code: int) -> None:
    one = life()
    for _ in range(JOB_RETRIES):
        assert one.decide([End(WORKER, code)]).action is Action.RETRY_JOB
    assert one.decide([End(WORKER, code)]).action is Action.FAIL


def test_a_killed_replica_restarts_five_times_and_then_the_job_three_times() -> None:
    one = life()
    actions = [one.decide([End(WORKER, 137)]).action for _ in range(24)]
    round_ = [Action.RESTART_REPLICAS] * WORKER_RESTARTS
    assert actions == [*[*round_, Action.RETRY_JOB] * JOB_RETRIES, *round_, Action.FAIL]


def test_restarts_are_counted_by_replica() -> None:
    one = life()
    for _ in range(WORKER_RESTARTS):
        assert one.decide([End(WORKER, 137)]).action is Action.RESTART_REPLICAS
    assert one.decide([End(OTHER, 137)]).action is Action.RESTART_REPLICAS
    assert one.decide([End(WORKER, 137)]).action is Action.RETRY_JOB


def test_two_killed_at_once_both_restart() -> None:
    decision = life().decide([End(WORKER, 137), End(OTHER, 143)])
    assert decision.action is Action.RESTART_REPLICAS
    assert [end.name for end in decision.ends] == [WORKER, OTHER]


def test_restart_job_on_worker_restart_restarts_all_of_them() -> None:
    decision = life(restartJobOnWorkerRestart=True).decide([End(WORKER, 137)])
    assert decision.action is Action.RESTART_ALL
    assert "workerpool1-0 was killed (restart 1 of 5)" in decision.note


def test_a_killed_replica_is_the_cause_of_what_fails_with_it() -> None:
    decision = life(restartJobOnWorkerRestart=True).decide([End(CHIEF, 1), End(WORKER, 137)])
    assert (decision.action, decision.ends) == (Action.RESTART_ALL, (End(WORKER, 137),))


@pytest.mark.parametrize("code", [6, 137, 1])
def test_disable_retries_makes_the_first_failure_the_last(code: int) -> None:
    one = life(disableRetries=True, restartJobOnWorkerRestart=True)
    assert one.decide([End(WORKER, code)]).action is Action.FAIL
    assert one.preempt([CHIEF]).stockout


def test_preemptions_end_with_a_stock_out_after_six_restarts() -> None:
    one = life()
    for _ in range(PREEMPTIONS):
        assert one.preempt([WORKER]).action is Action.RETRY_JOB
    last = one.preempt([WORKER])
    assert (last.action, last.stockout) == (Action.FAIL, True)
