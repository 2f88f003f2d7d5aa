"""Tuning jobs in ``vt local status`` and ``vt local down``."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from localgcp.home import Home
from localgcp.runner.joblog import JobLog
from localgcp.tuning.records import (
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
)
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training_cli.cli import app


@pytest.fixture
def table(home: Home, monkeypatch: pytest.MonkeyPatch) -> TuningTable:
    """A tuning job of four trials: one is over, one runs."""
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    made = TuningTable(home.database)
    values = {**vars(job_row("7", {})), "display_name": "tuned", "state": JobState.RUNNING}
    study = {"metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}]}
    request = {"maxTrialCount": 4, "parallelTrialCount": 2, "studySpec": study}
    made.insert(TuningRecord(**{**values, "request": request}))
    JobTable(home.database).list()  # makes its table
    for number, state in enumerate((TrialState.SUCCEEDED, TrialState.ACTIVE), 1):
        over = state is TrialState.SUCCEEDED
        job = job_row(f"7{number}", {}, state=JobState.SUCCEEDED if over else JobState.RUNNING)
        made.add_trial(TrialRecord("7", number, job.job_id, job.name, {"x": 1}, state), job)
    return made


@pytest.fixture
def logged(home: Home, table: TuningTable) -> TuningTable:
    """Both trials have a log, one with no UTF-8 in it; stack `dev` calls the job `search`."""
    for number in (1, 2):
        JobLog(home.jobs / f"7{number}" / "logs" / "workerpool0-0.log").append(f"of trial {number}")
    with (home.jobs / "71" / "logs" / "workerpool0-0.log").open("ab") as log:
        log.write(b"\xff\n")
    name = "projects/1/locations/us-central1/hyperparameterTuningJobs/7"
    resource = {"custom": True, "type": "t", "urn": "urn::search", "id": name}
    file = home.pulumi / ".pulumi" / "stacks" / "p" / "dev.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": [resource]}}}))
    return table


def logs(*words: str) -> list[str]:
    """Lines of ``vt local logs``, without their times."""
    done = CliRunner().invoke(app, ["local", "logs", *words])
    assert done.exit_code == 0, done.output
    return [re.sub(r"\[.*?\] ", "", line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["tuned", "search", "7"])
def test_the_logs_of_a_tuning_job_are_those_of_its_trials(logged: TuningTable, name: str) -> None:
    assert logs(name) == [
        "trial 1 | of trial 1", "trial 1 | \ufffd", "trial 2 | of trial 2",
    ]  # fmt: skip
    assert logs(name, "--trial", "2") == ["of trial 2"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("tuned", "--trial", "9"), "has no trial '9'. Hint: choose one of: 1, 2."),
        (("search-trial-9",), "has no trial '9'. Hint: choose one of: 1, 2."),
        (("tuned", "-f"), "print the log of only one trial. Hint: choose one with --trial: 2."),
        (("71", "--trial", "1"), "has no trials. Hint: omit --trial."),
        (("tuned", "--replica", "workerpool1-0"), "has a log of replica workerpool1-0."),
        (("nobody",), "job 'nobody' does not exist. Hint: choose one of: tuned."),
    ],
)
def test_logs_that_are_not_there_are_one_line(
    logged: TuningTable, words: tuple[str, ...], text: str
) -> None:
    done = CliRunner().invoke(app, ["local", "logs", *words])
    assert done.exit_code == 1
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1
