"""Trials: how many at once, how they end, and what is left after a kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localgcp.runner.refusals import Refusal, stored_only
from localgcp.system import processes
from localgcp.vertex.records import JobState as State
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until
from tests.unit.localcloud.tuning.studies import (
    JobState,
    TrialState,
    get,
    python,
    run,
    submit,
    table,
    tuning,
    wait,
)

DISCRETE = {"parameter_id": "lr", "discrete_value_spec": {"values": [0.1, 0.2, 0.6, 0.7, 0.8]}}
GRID = {"algorithm": "GRID_SEARCH"}


def grid(spec: dict[str, Any] | None, trials: int, parallel: int, **job: Any) -> dict[str, Any]:
    return tuning(spec, trials=trials, parallel=parallel, parameters=[DISCRETE], study=GRID, **job)


def test_a_trial_without_a_measurement_is_infeasible_and_says_so(cloud: Cloud) -> None:
    done = run(cloud, grid(python("pass"), trials=1, parallel=1))
    assert done.state == JobState.JOB_STATE_FAILED
    assert "reported no metric: CLOUD_ML_HP_METRIC_FILE was not written" in done.error.message


def test_cancel_ends_all_trials_even_those_that_ignore_sigterm(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localgcp.runner.replica.GRACE_SECONDS", 0.2)
    deaf = "trap '' TERM; sleep 600 & wait; sleep 600"
    spec = command_job("sh", "-c", deaf)["job_spec"]
    name = submit(cloud, grid(spec, trials=5, parallel=3))
    wait_until(lambda: sum(bool(t.start_time) for t in get(cloud, name).trials) == 3)
    cloud.client.cancel_hyperparameter_tuning_job(name=name)
    done = wait(cloud, name)
    assert (done.state, done.error.code) == (JobState.JOB_STATE_CANCELLED, 1)
    assert all(trial.state == TrialState.INFEASIBLE for trial in done.trials)
    assert processes.live_children(cloud.home.children) == []


def test_a_server_that_was_killed_runs_its_trials_again_and_fails_its_jobs(
    make_cloud: Callable[..., Cloud],
) -> None:
    cloud = make_cloud()
    name = submit(cloud, tuning(trials=2, parallel=1))
    over = submit(cloud, tuning(trials=1))
    wait(cloud, name)
    ended = wait(cloud, over).trials[0]
    job = get(cloud, name).trials[1].custom_job.rpartition("/")[2]
    plain = cloud.run(command_job("true")).name.rpartition("/")[2]
    cloud.stop()
    # As a kill leaves it: rows that say RUNNING, and no process.
    trial = table(cloud).trial_of(job)
    assert trial is not None
    _rewind(cloud, name.rpartition("/")[2], job, plain, ended.custom_job.rpartition("/")[2])
    again = make_cloud()
    done = wait(again, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert [t.custom_job.rpartition("/")[2] for t in done.trials][1] == job
    assert again.jobs.get(plain).state is State.FAILED  # pyright: ignore[reportOptionalMemberAccess]
    # A trial that ended while no server ran is settled though its tuning job is over.
    assert get(again, over).trials[0] == ended


def _rewind(cloud: Cloud, tuning_id: str, job: str, plain: str, of_ended: str) -> None:
    import sqlite3

    with sqlite3.connect(cloud.home.database) as db:
        for each in (job, plain):
            db.execute("UPDATE custom_jobs SET state='JOB_STATE_RUNNING' WHERE job_id=?", (each,))
        db.execute("UPDATE tuning_jobs SET state='JOB_STATE_RUNNING' WHERE job_id=?", (tuning_id,))
        for each in (job, of_ended):
            db.execute("UPDATE trials SET state='ACTIVE', measurement=NULL WHERE job_id=?", (each,))


def test_rules_that_are_not_carried_out_are_told() -> None:
    fields = (
        *("medianAutomatedStoppingSpec", "decayCurveStoppingSpec", "convexAutomatedStoppingSpec"),
        "studyStoppingConfig",
    )
    assert list(stored_only({"metrics": []})) == []
    assert list(stored_only({each: {} for each in fields})) == [
        Refusal(
            ("studySpec", field),
            f"the local cloud stores {field} without effect: every trial runs to its end",
            "",
            "warning",
        )
        for field in fields
    ]
