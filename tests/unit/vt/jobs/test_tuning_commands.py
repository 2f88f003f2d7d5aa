"""`vt jobs` about tuning jobs, through the official client, with trials that run."""

from __future__ import annotations

import json

import pytest
from click.testing import Result

from tests.unit.localcloud.conftest import Cloud, wait_until
from tests.unit.localcloud.tuning import studies
from tests.unit.vt.jobs.test_commands import Vt, vt
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
)

__all__ = ["vt"]
LABELS = {STACK_LABEL: "local", JOB_LABEL: "tune", RUN_LABEL: "2", REQUEST_ID_LABEL: "tune-2"}
SLEEP = "import time; print('begun', flush=True); time.sleep(600)"


def tune(cloud: Cloud, code: str = studies.REPORT, **more: object) -> str:
    """Resource name of a tuning job, labelled as the provider of stack `local` does."""
    labels = TUNING_JOB.sent_labels(LABELS)
    study = {"algorithm": "RANDOM_SEARCH"}
    made = studies.tuning(studies.python(code), labels=labels, study=study, **more)
    return studies.submit(cloud, made)


@pytest.fixture
def tuned(cloud: Cloud) -> str:
    """Id of a tuning job that has ended: two trials."""
    name = tune(cloud, trials=2)
    studies.wait(cloud, name)
    return name.rpartition("/")[2]


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines() if line.strip()]


def test_show_has_the_trials_best_first(vt: Vt, tuned: str) -> None:
    shown = rows(vt("show", "tune"))
    assert shown[0] == ["TUNING", "JOB", "tune"]
    head = next(index for index, row in enumerate(shown) if row[0] == "TRIAL")
    assert shown[head] == ["TRIAL", "STATE", "accuracy", "lr", "id"]
    values = [float(row[2]) for row in shown[head + 1 :]]
    assert values == sorted(values, reverse=True)
    assert len(values) == 2
    message = json.loads(vt("show", tuned, "--format", "json").stdout)
    assert len(message["trials"]) == 2


def test_logs_are_of_one_trial_or_of_each_in_turn(vt: Vt, cloud: Cloud) -> None:
    name = tune(cloud, "print('hello')" + studies.REPORT, trials=2)
    studies.wait(cloud, name)
    lines = [line for line in vt("logs", "tune").stdout.splitlines() if "hello" in line]
    assert lines == ["trial 1 | hello", "trial 2 | hello"]
    assert "hello" in vt("logs", "tune", "--trial", "2").stdout.splitlines()
    refused = vt("logs", "tune", "--trial", "9", code=1)
    assert "there is no trial '9'" in refused.stderr
    assert "1, 2" in refused.stderr
    assert "--trial" in vt("logs", "tune", "-f", code=1).stderr


def test_a_wait_ends_with_the_tuning_job(vt: Vt, tuned: str) -> None:
    assert "job tune: SUCCEEDED" in vt("wait", tuned).stderr


def test_a_failed_tuning_job_shows_the_log_of_a_failed_trial(vt: Vt, cloud: Cloud) -> None:
    name = tune(cloud, "print('so it broke'); raise SystemExit(3)", trials=2)
    studies.wait(cloud, name)
    assert "so it broke" in vt("wait", "tune", code=1).stderr


def test_cancel_ends_it_with_its_trials(vt: Vt, cloud: Cloud) -> None:
    name = tune(cloud, SLEEP, trials=2, parallel=1)
    wait_until(lambda: bool(studies.get(cloud, name).trials))
    assert "asked to cancel" in vt("cancel", "tune", "--yes").stderr
    assert studies.wait(cloud, name).state.name == "JOB_STATE_CANCELLED"
    wait_until(lambda: all(job.state.terminal for job in cloud.jobs.list()))


def test_names_of_parameters_move_no_cursor(vt: Vt, cloud: Cloud) -> None:
    wild = {"parameter_id": "x\x1b[2J", "discrete_value_spec": {"values": [1]}}
    labels = TUNING_JOB.sent_labels(LABELS)
    study = {"algorithm": "RANDOM_SEARCH"}
    made = studies.tuning(
        studies.python("pass"), labels=labels, study=study, parameters=[wild], trials=1
    )
    studies.wait(cloud, studies.submit(cloud, made))
    assert "\x1b" not in vt("show", "tune").stdout
