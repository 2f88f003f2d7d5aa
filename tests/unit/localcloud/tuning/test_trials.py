"""Trials: how many at once, how they end, and what is left after a kill."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp import processes
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.runner.environment import metrics_file
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
EXIT_3 = "raise SystemExit(3)"
#: Fails for a small learning rate, else reports.
SOMETIMES = f"""
import sys
if float(sys.argv[2]) < 0.5:
    raise SystemExit(3)
{REPORT}
"""
DISCRETE = {"parameter_id": "lr", "discrete_value_spec": {"values": [0.1, 0.2, 0.6, 0.7, 0.8]}}
GRID = {"algorithm": "GRID_SEARCH"}


def grid(spec: dict[str, Any] | None, trials: int, parallel: int, **job: Any) -> dict[str, Any]:
    return tuning(spec, trials=trials, parallel=parallel, parameters=[DISCRETE], study=GRID, **job)


def rates(job: vertex.HyperparameterTuningJob) -> list[float]:
    return [float(trial.parameters[0].value) for trial in job.trials]


def test_no_more_trials_at_once_than_parallel_trial_count_and_none_twice(cloud: Cloud) -> None:
    name = submit(cloud, tuning(python(REPORT + "import time; time.sleep(0.3)"), trials=7))
    most, over = 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not over.is_set():
            live = [t for t in get(cloud, name).trials if not t.end_time]
            most = max(most, len(live))
            time.sleep(0.01)

    watcher = threading.Thread(target=look)
    watcher.start()
    done = wait(cloud, name)
    over.set()
    watcher.join()
    assert most == 2
    assert [trial.id for trial in done.trials] == [str(n) for n in range(1, 8)]
    assert len({trial.custom_job for trial in done.trials}) == 7


def test_jobs_do_not_wait_for_trials_nor_trials_for_jobs(cloud: Cloud) -> None:
    sleeping = submit(cloud, tuning(python(SLEEP), trials=1000, parallel=1000))
    wait_until(lambda: len([t for t in get(cloud, sleeping).trials if t.start_time]) == 4)
    assert cloud.run(command_job("true")).state == JobState.JOB_STATE_SUCCEEDED
    cloud.client.cancel_hyperparameter_tuning_job(name=sleeping)
    assert len(wait(cloud, sleeping).trials) == 4  # what this machine runs at once
    for _ in range(2):  # all slots of jobs
        cloud.submit(command_job("sleep", "600"))
    assert run(cloud, tuning(trials=3)).state == JobState.JOB_STATE_SUCCEEDED


def test_a_grid_is_gone_through_once_and_ends_before_the_last_trial_asked_for(
    cloud: Cloud,
) -> None:
    done = run(cloud, grid(None, trials=20, parallel=3))
    assert rates(done) == [0.1, 0.2, 0.6, 0.7, 0.8]
    assert done.state == JobState.JOB_STATE_SUCCEEDED


def test_a_first_trial_that_fails_ends_the_job_and_the_other_trials(cloud: Cloud) -> None:
    code = f"import os, time\nif os.environ['CLOUD_ML_TRIAL_ID'] != '1': time.sleep(600)\n{EXIT_3}"
    done = run(cloud, grid(python(code), trials=5, parallel=3))
    assert done.state == JobState.JOB_STATE_FAILED
    assert "The first trial failed: The replica workerpool0-0 exited" in done.error.message
    assert [trial.state for trial in done.trials] == [TrialState.INFEASIBLE] * 3
    assert done.trials[1].infeasible_reason == "The tuning job failed."
    assert processes.live_children(cloud.home.children) == []


def test_failed_trials_are_infeasible_until_there_are_as_many_as_allowed(cloud: Cloud) -> None:
    done = run(cloud, grid(python(SOMETIMES), trials=5, parallel=1, max_failed_trial_count=3))
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    states = [trial.state for trial in done.trials]
    assert states == [TrialState.INFEASIBLE] * 2 + [TrialState.SUCCEEDED] * 3
    failed = run(cloud, grid(python(SOMETIMES), trials=5, parallel=1, max_failed_trial_count=2))
    assert failed.state == JobState.JOB_STATE_FAILED
    assert "2 trials failed, as many as maxFailedTrialCount (2)" in failed.error.message
    assert len(failed.trials) == 2


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


def test_cancel_while_trials_start_leaves_none_that_runs(cloud: Cloud) -> None:
    names = [submit(cloud, grid(python(SLEEP), trials=5, parallel=4)) for _ in range(3)]
    for name in names:
        cloud.client.cancel_hyperparameter_tuning_job(name=name)
    for name in names:
        assert wait(cloud, name).state == JobState.JOB_STATE_CANCELLED
    assert all(job.state.terminal for job in cloud.jobs.list())
    cloud.client.cancel_hyperparameter_tuning_job(name=names[0])  # again: no error
    assert get(cloud, names[0]).state == JobState.JOB_STATE_CANCELLED


def test_one_trial_that_is_cancelled_by_hand_is_infeasible_and_the_others_go_on(
    cloud: Cloud,
) -> None:
    code = "import os, time\nif os.environ['CLOUD_ML_TRIAL_ID'] == '2': time.sleep(600)\n" + REPORT
    name = submit(cloud, grid(python(code), trials=5, parallel=2))
    wait_until(lambda: len(get(cloud, name).trials) > 1 and get(cloud, name).trials[1].start_time)
    cloud.client.cancel_custom_job(name=get(cloud, name).trials[1].custom_job)
    done = wait(cloud, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert done.trials[1].infeasible_reason == "The job was cancelled."


@pytest.mark.parametrize("of", ["one", "both"])
def test_a_cancel_while_trials_lose_their_machines_ends_all(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    monkeypatch.setattr("localgcp.runner.replica.GRACE_SECONDS", 1)
    spec = command_job(
        "sh", "-c", "trap '' TERM; echo begun; sleep 600 & wait; sleep 600",
        scheduling={"strategy": "SPOT"},
    )["job_spec"]  # fmt: skip
    name = submit(cloud, grid(spec, trials=4, parallel=2))

    def logs(text: str) -> int:
        jobs = [cloud.client.get_custom_job(name=t.custom_job) for t in get(cloud, name).trials]
        return sum(text in cloud.log(job) for job in jobs)

    wait_until(lambda: logs("begun") == 2)
    faults = FaultTable(cloud.home.faults)
    match = {"one": "tuned-trial-1", "both": "tuned-trial"}[of]
    faults.add(Fault.parse(service="jobs", kind="preempt", match=match, times=0))
    wait_until(lambda: logs("lost its machine") >= (1 if of == "one" else 2))
    cloud.client.cancel_hyperparameter_tuning_job(name=name)
    done = wait(cloud, name)
    assert done.state == JobState.JOB_STATE_CANCELLED
    assert [trial.state for trial in done.trials] == [TrialState.INFEASIBLE] * 2
    assert all(job.state is State.CANCELLED for job in cloud.jobs.list())
    assert processes.live_children(cloud.home.children) == []


#: Reports by right and by mistake; the second trial waits until it is told to go on.
WRONG = """
import json, os, pathlib, time
def report(**words):
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "a") as file:
        print(json.dumps(words), file=file)
report(accuracy="0.5", global_step="1")
report(accuracy="0.6", global_step="2")
report(accuracy="nan", global_step="3")
report(acuracy="0.9", global_step="4")
report(accuracy="0.55", global_step="1")
if os.environ["CLOUD_ML_TRIAL_ID"] == "2":
    while not pathlib.Path(MARK).exists():
        time.sleep(0.05)
"""


def test_what_a_trial_reports_by_mistake_twice_or_after_its_end_changes_no_other_value(
    cloud: Cloud,
) -> None:
    mark = cloud.home.root / "go-on"
    code = WRONG.replace("MARK", repr(str(mark)))
    name = submit(cloud, grid(python(code), trials=2, parallel=1))
    wait_until(lambda: len(get(cloud, name).trials) == 2 and get(cloud, name).trials[1].start_time)
    job = get(cloud, name).trials[0].custom_job.rpartition("/")[2]
    file = metrics_file(cloud.home.jobs / job / "gcs", "workerpool0-0")
    with file.open("a") as opened:
        opened.write('{"accuracy": "1.0", "global_step": "9"}\n')
    mark.touch()
    for trial in wait(cloud, name).trials:
        assert trial.state == TrialState.SUCCEEDED
        assert trial.final_measurement.step_count == 1
        assert trial.final_measurement.metrics[0].value == 0.55
        values = [(each.step_count, each.metrics[0].value) for each in trial.measurements]
        assert values == [(1, 0.55), (2, 0.6)]


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


def test_a_server_that_stops_goes_on_with_the_same_trials_at_its_next_start(
    make_cloud: Callable[..., Cloud],
) -> None:
    first = make_cloud()
    # The first run of trials 3 and 4 waits for ever; the file tells the second run to go on.
    code = f"""
import os, pathlib, time
mark = pathlib.Path({str(first.home.root)!r}, "go-" + os.environ["CLOUD_ML_TRIAL_ID"])
if os.environ["CLOUD_ML_TRIAL_ID"] in "34" and not mark.exists():
    mark.touch()
    time.sleep(600)
{REPORT}"""
    name = submit(first, tuning(python(code), trials=6))
    wait_until(lambda: all((first.home.root / f"go-{n}").exists() for n in (3, 4)))
    before = {trial.id: trial.custom_job for trial in get(first, name).trials}
    first.stop()
    interrupted = [job for job in first.jobs.list() if not job.state.terminal]
    assert [job.state for job in interrupted] == [State.QUEUED] * 2
    second = make_cloud()
    done = wait(second, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert len(done.trials) == 6
    assert before == {t.id: t.custom_job for t in done.trials if t.id in before}
    assert len(second.jobs.list()) == 6


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


@pytest.mark.parametrize("algorithm", ["RANDOM_SEARCH", "ALGORITHM_UNSPECIFIED"])
def test_conditional_parameters_and_values_of_any_text_reach_the_code_as_they_are(
    cloud: Cloud, algorithm: str
) -> None:
    words = ["two words", 'it\'s "quoted"', "größer", "$(CLOUD_ML_TRIAL_ID)", "a\nb"]
    kind = {
        "parameter_id": "kind-of",
        "categorical_value_spec": {"values": words},
        "conditional_parameter_specs": [
            {
                "parent_categorical_values": {"values": words[1:]},
                "parameter_spec": {
                    "parameter_id": "depth",
                    "integer_value_spec": {"min_value": 1, "max_value": 3},
                },
            }
        ],
    }
    code = """
import json, os, sys
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print("ARGS", json.dumps(sys.argv[1:]))
assert ("--depth" in args) == (args["--kind-of"] != "two words"), args
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    print(json.dumps({"accuracy": 1, "global_step": 1}), file=file)
"""
    job = tuning(python(code), trials=6, parameters=[kind], study={"algorithm": algorithm})
    done = run(cloud, job)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    for trial in done.trials:
        values = {each.parameter_id: each.value for each in trial.parameters}
        assert values["kind-of"] in words
        assert ("depth" in values) == (values["kind-of"] != "two words")
