"""Trials: how many at once, how they end, and what is left after a kill."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from localgcp import processes
from localgcp.vertex.records import JobState as State
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until
from tests.unit.localcloud.tuning.studies import (
    REPORT,
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

SLEEP = "import time; time.sleep(600)"
DISCRETE = {"parameter_id": "lr", "discrete_value_spec": {"values": [0.1, 0.2, 0.6, 0.7, 0.8]}}
GRID = {"algorithm": "GRID_SEARCH"}


def grid(spec: dict[str, Any] | None, trials: int, parallel: int, **job: Any) -> dict[str, Any]:
    return tuning(spec, trials=trials, parallel=parallel, parameters=[DISCRETE], study=GRID, **job)


def test_jobs_do_not_wait_for_trials_nor_trials_for_jobs(cloud: Cloud) -> None:
    sleeping = submit(cloud, tuning(python(SLEEP), trials=1000, parallel=1000))
    wait_until(lambda: len([t for t in get(cloud, sleeping).trials if t.start_time]) == 4)
    assert cloud.run(command_job("true")).state == JobState.JOB_STATE_SUCCEEDED
    cloud.client.cancel_hyperparameter_tuning_job(name=sleeping)
    assert len(wait(cloud, sleeping).trials) == 4  # what this machine runs at once
    for _ in range(2):  # all slots of jobs
        cloud.submit(command_job("sleep", "600"))
    assert run(cloud, tuning(trials=3)).state == JobState.JOB_STATE_SUCCEEDED


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


def test_each_trial_has_its_own_folders_and_variables(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out")
    code = f"import os\nprint(dict(os.environ))\n{REPORT}"
    base = {"base_output_directory": {"output_uri_prefix": "gs://out/run/"}}
    done = run(cloud, grid(python(code, **base), trials=2, parallel=2))
    for trial in done.trials:
        job = cloud.client.get_custom_job(name=trial.custom_job)
        printed = cloud.log(job)
        assert f"'AIP_MODEL_DIR': 'gs://out/run/{trial.id}/model/'" in printed
        assert f"'AIP_CHECKPOINT_DIR': 'gs://out/run/{trial.id}/checkpoints/'" in printed
        assert f"'AIP_TENSORBOARD_LOG_DIR': 'gs://out/run/{trial.id}/logs/'" in printed
        assert f"'CLOUD_ML_TRIAL_ID': '{trial.id}'" in printed
    plain = cloud.run(command_job(sys.executable, "-c", "import os; print(dict(os.environ))"))
    assert "CLOUD_ML_TRIAL_ID" not in cloud.log(plain)
    assert "CLOUD_ML_HP_METRIC_FILE" not in cloud.log(plain)


def test_a_server_that_was_killed_runs_its_trials_again_and_fails_its_jobs(
    make_cloud: Callable[..., Cloud],
) -> None:
    cloud = make_cloud()
    name = submit(cloud, tuning(trials=2, parallel=1))
    wait(cloud, name)
    job = get(cloud, name).trials[1].custom_job.rpartition("/")[2]
    plain = cloud.run(command_job("true")).name.rpartition("/")[2]
    cloud.stop()
    # As a kill leaves it: rows that say RUNNING, and no process.
    trial = table(cloud).trial_of(job)
    assert trial is not None
    _rewind(cloud, name.rpartition("/")[2], job, plain)
    again = make_cloud()
    done = wait(again, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert [t.custom_job.rpartition("/")[2] for t in done.trials][1] == job
    assert again.jobs.get(plain).state is State.FAILED  # pyright: ignore[reportOptionalMemberAccess]


def _rewind(cloud: Cloud, tuning_id: str, *jobs: str) -> None:
    import sqlite3

    with sqlite3.connect(cloud.home.database) as db:
        for job in jobs:
            db.execute("UPDATE custom_jobs SET state='JOB_STATE_RUNNING' WHERE job_id=?", (job,))
        db.execute("UPDATE tuning_jobs SET state='JOB_STATE_RUNNING' WHERE job_id=?", (tuning_id,))
        db.execute("UPDATE trials SET state='ACTIVE', measurement=NULL WHERE job_id=?", (jobs[0],))
