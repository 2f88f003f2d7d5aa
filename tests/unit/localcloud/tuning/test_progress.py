"""When trials are started, and when a tuning job is over."""

from __future__ import annotations

from localgcp.tuning.progress import MOST_PARALLEL, next_step
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord
from localgcp.vertex.records import JobState

S, F, A = TrialState.SUCCEEDED, TrialState.INFEASIBLE, TrialState.ACTIVE


def job(trials: int, parallel: int, failed: int = 0) -> TuningRecord:
    request = {"maxTrialCount": trials, "parallelTrialCount": parallel}
    request |= {"maxFailedTrialCount": failed} if failed else {}
    return TuningRecord(
        *("1", "p", "2", "r", "name", {}, request, JobState.RUNNING),
        *("t", None, None, "t", None, None),
    )


def rows(*states: TrialState) -> list[TrialRecord]:
    return [
        TrialRecord("1", n, str(n), "", {}, state, infeasible_reason="broken")
        for n, state in enumerate(states, 1)
    ]


def test_trials_are_started_up_to_the_count_the_rest_and_what_the_machine_carries() -> None:
    assert next_step(job(12, 3), [], points=None, room=99).start == 3
    assert next_step(job(12, 3), rows(S, A), points=None, room=99).start == 2
    assert next_step(job(3, 3), rows(S, S), points=None, room=99).start == 1
    assert next_step(job(1000, 1000), [], points=None, room=99).start == MOST_PARALLEL
    assert next_step(job(12, 4), rows(A), points=None, room=2).start == 1
    assert next_step(job(12, 4), [], points=None, room=0).start == 1  # one always runs
    assert next_step(job(12, 3), rows(S, S), points=3, room=99).start == 1


def test_a_job_is_done_when_all_trials_are_over() -> None:
    assert not next_step(job(2, 2), rows(S, A), points=None, room=9).done
    assert next_step(job(2, 2), rows(S, F), points=None, room=9).done
    assert next_step(job(9, 2), rows(S, S), points=2, room=9).done


def test_failures_end_a_job_as_counted_or_as_the_service_decides() -> None:
    assert "first trial failed" in next_step(job(9, 2), rows(F, A), points=None, room=9).failure
    assert not next_step(job(9, 2), rows(F, A), points=None, room=9).done
    assert not next_step(job(9, 2, failed=2), rows(F, S), points=None, room=9).failure
    assert next_step(job(9, 2, failed=2), rows(F, F), points=None, room=9).failure
    assert not next_step(job(8, 2), rows(S, F, F, F), points=None, room=9).failure
    text = next_step(job(8, 2), rows(S, F, F, F, F), points=None, room=9).failure
    assert text == "4 of 8 trials failed. Trial 2: broken"
    over = next_step(job(2, 2, failed=3), rows(F, F), points=None, room=9)
    assert over.done
    assert over.failure == "All trials failed."
