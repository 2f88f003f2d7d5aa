"""Restarts and retries, as the service documents them."""

from __future__ import annotations

import pytest

from localgcp.runner.gang.life_cycle import (
    JOB_RETRIES,
    PREEMPTIONS,
    WORKER_RESTARTS,
    Action,
    Decision,
    End,
    Grade,
    LifeCycle,
    grade,
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


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (6, Grade.TRANSIENT), (11, Grade.TRANSIENT), (134, Grade.TRANSIENT),
        (139, Grade.TRANSIENT), (137, Grade.KILLED), (143, Grade.KILLED),
        (1, Grade.PERMANENT), (5, Grade.PERMANENT), (7, Grade.PERMANENT),
        (133, Grade.PERMANENT), (138, Grade.PERMANENT), (142, Grade.PERMANENT),
    ],
)  # fmt: skip
def test_an_exit_code_stands_for_a_kind_of_failure(code: int, kind: Grade) -> None:
    assert grade(code) is kind


def test_the_service_restarts_five_times_retries_three_times_and_preempts_six_times() -> None:
    assert (WORKER_RESTARTS, JOB_RETRIES, PREEMPTIONS) == (5, 3, 6)


@pytest.mark.parametrize(
    ("scheduling", "once", "all_"),
    [
        ({}, False, False),
        ({"disableRetries": True}, True, False),
        ({"restartJobOnWorkerRestart": True}, False, True),
        ({"disableRetries": True, "restartJobOnWorkerRestart": True}, True, False),
        ({"disableRetries": False, "restartJobOnWorkerRestart": True}, False, True),
    ],
)
def test_a_job_begins_as_its_scheduling_says(
    scheduling: dict[str, bool], once: bool, all_: bool
) -> None:
    assert LifeCycle.of(CHIEF, scheduling) == LifeCycle(
        primary=CHIEF, disable_retries=once, restart_all=all_, retries=0, preemptions=0
    )


def test_a_decision_tells_all_that_follows() -> None:
    one = LifeCycle(CHIEF)
    for ends, expected in (
        ([End(WORKER, 0)], (Action.CONTINUE, (), "", False)),
        ([End(CHIEF, 0)], (Action.SUCCEED, (), "", False)),
        ([End(WORKER, 1)], (Action.FAIL, (End(WORKER, 1),), "", False)),
    ):
        found = one.decide(ends)
        assert (found.action, found.ends, found.note, found.stockout) == expected
    assert one.decide([End(WORKER, 137)]).action is Action.RESTART_REPLICAS


def test_one_replica_with_all_its_restarts_retries_the_job_though_another_has_some() -> None:
    one = life()
    for _ in range(WORKER_RESTARTS):
        one.decide([End(WORKER, 137)])
    assert one.decide([End(WORKER, 137), End(OTHER, 137)]) == Decision(
        Action.RETRY_JOB,
        (End(WORKER, 137),),
        "workerpool1-0 exited with status 137: the whole job is retried (1 of 3)",
        stockout=False,
    )


def test_the_log_says_what_happened_and_how_often_it_may() -> None:
    one = life()
    assert one.decide([End(WORKER, 0)]) == Decision(Action.CONTINUE)
    assert one.decide([End(WORKER, 137), End(OTHER, 143)]) == Decision(
        Action.RESTART_REPLICAS,
        (End(WORKER, 137), End(OTHER, 143)),
        "workerpool1-0 was killed (restart 1 of 5), workerpool1-1 was killed (restart 1 of 5)",
    )
    assert one.decide([End(WORKER, 137)]).note == "workerpool1-0 was killed (restart 2 of 5)"
    assert one.decide([End(OTHER, 1), End(WORKER, 139)]) == Decision(
        Action.RETRY_JOB,
        (End(WORKER, 139),),
        "workerpool1-0 exited with status 139: the whole job is retried (1 of 3)",
    )
    # A retry is on new machines: restarts are counted from the first again.
    assert one.decide([End(WORKER, 137)]).note == "workerpool1-0 was killed (restart 1 of 5)"
    assert one.decide([End(WORKER, 6)]).note == (
        "workerpool1-0 exited with status 6: the whole job is retried (2 of 3)"
    )
    assert one.decide([End(OTHER, 2), End(WORKER, 1)]) == Decision(Action.FAIL, (End(OTHER, 2),))
    assert one.decide([End(WORKER, 1), End(CHIEF, 0)]) == Decision(Action.SUCCEED)


def test_all_replicas_restart_if_the_job_says_so_and_the_log_tells_why() -> None:
    one = life(restartJobOnWorkerRestart=True)
    assert one.decide([End(WORKER, 143)]) == Decision(
        Action.RESTART_ALL,
        (End(WORKER, 143),),
        "workerpool1-0 was killed (restart 1 of 5); all replicas restart, "
        "as restartJobOnWorkerRestart says",
    )


def test_a_preemption_is_told_with_its_number() -> None:
    one = life()
    assert one.preempt([WORKER]) == Decision(
        Action.RETRY_JOB,
        (End(WORKER, 143),),
        "preempted: workerpool1-0 lost its machine (1 of 6)",
    )
    assert one.preempt([CHIEF, WORKER]) == Decision(
        Action.RETRY_JOB,
        (End(CHIEF, 143), End(WORKER, 143)),
        "preempted: all lost their machines (2 of 6)",
    )
    assert life(disableRetries=True).preempt([CHIEF]) == Decision(
        Action.FAIL,
        (End(CHIEF, 143),),
        "preempted: workerpool0-0 lost its machine",
        stockout=True,
    )
