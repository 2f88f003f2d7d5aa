"""Tuning jobs in ``vt local status`` and ``vt local down``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from tests.unit.localcloud.conftest import Cloud
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training.localcloud.home import Home
from vertex_training.localcloud.tuning.records import (
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
)
from vertex_training.localcloud.vertex.records import JobState, JobTable
from vertex_training.vt.cli import app


@pytest.fixture
def table(home: Home, monkeypatch: pytest.MonkeyPatch) -> TuningTable:
    """A tuning job of four trials: one is over, one runs."""
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    made = TuningTable(home.database)
    values = {**vars(job_row("7", {})), "display_name": "tuned", "state": JobState.RUNNING}
    request = {"maxTrialCount": 4, "parallelTrialCount": 2}
    made.insert(TuningRecord(**{**values, "request": request}))
    JobTable(home.database).list()  # makes its table
    for number, state in enumerate((TrialState.SUCCEEDED, TrialState.ACTIVE), 1):
        over = state is TrialState.SUCCEEDED
        job = job_row(f"7{number}", {}, state=JobState.SUCCEEDED if over else JobState.RUNNING)
        made.add_trial(TrialRecord("7", number, job.job_id, job.name, {"x": 1}, state), job)
    return made


def test_the_status_counts_the_trials_that_are_over(table: TuningTable) -> None:
    done = CliRunner().invoke(app, ["local", "status"])
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("tuned"))
    assert row == ["tuned", "7", "RUNNING", "1/4"]


def test_down_cancels_tuning_jobs_so_that_the_next_server_starts_no_further_trial(
    table: TuningTable, make_cloud: Callable[[], Cloud]
) -> None:
    done = CliRunner().invoke(app, ["local", "down"])
    assert done.exit_code == 0, done.output
    assert "job tuned (7) was cancelled" in done.stdout + done.stderr
    found = table.get("7")
    assert found is not None
    assert found.state is JobState.CANCELLED
    cloud = make_cloud()
    assert [job.state for job in cloud.jobs.list()].count(JobState.CANCELLED) == 1
    assert [trial.state for trial in table.trials("7")] == [
        TrialState.SUCCEEDED,
        TrialState.INFEASIBLE,
    ]
