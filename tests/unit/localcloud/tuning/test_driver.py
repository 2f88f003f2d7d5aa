"""One tuning job step by step: which trials are started, how they are judged, how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.home import Home
from localgcp.runner.environment import metrics_file
from localgcp.tuning import driver as drivers
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import (
    Measurement,
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
)
from localgcp.vertex import records
from localgcp.vertex.records import JobRecord, JobState, JobTable

PROJECT, REGION = "local-training", "us-central1"
N: dict[str, Any] = {
    "parameterId": "n",
    "integerValueSpec": {"minValue": "1", "maxValue": "9"},
}
TIMES = {f"T{n}": f"2026-01-02T03:04:{n:02}.000000Z" for n in range(60)}


class Studied:
    """A tuning job, its driver, and jobs that do what a test says."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = Home(root, root)
        self.table, self.jobs = TuningTable(self.home.database), JobTable(self.home.database)
        self.jobs.list()  # makes its table, as the server does before
        self.submitted: list[str] = []
        self.cancelled: list[str] = []
        self.driver = TuningDriver(self.home, self.table, self.jobs, self)
        self.free = 1 << 40
        memory = SimpleNamespace
        monkeypatch.setattr(drivers.psutil, "virtual_memory", lambda: memory(available=self.free))
        self.seconds = 0
        monkeypatch.setattr(records, "now", self.now)
        monkeypatch.setattr(drivers, "now", self.now)
        self.id = ""

    def now(self) -> str:
        self.seconds += 1
        return TIMES[f"T{self.seconds}"]

    def submit(self, job_id: str) -> None:
        self.submitted.append(job_id)

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)

    def make(self, trials: int = 3, parallel: int = 2, **changes: Any) -> TuningRecord:
        study = {
            "metrics": [{"metricId": "m", "goal": "MAXIMIZE"}],
            "parameters": [N],
            "algorithm": "GRID_SEARCH",
            **changes.pop("study", {}),
        }
        container = {"imageUri": "x", "command": ["train"], "args": ["--own"]}
        pool = {"replicaCount": "1", "containerSpec": container}
        request = {
            "displayName": "study",
            "studySpec": study,
            "maxTrialCount": trials,
            "parallelTrialCount": parallel,
            "trialJobSpec": {"workerPoolSpecs": [pool]},
            **changes,
        }
        made = TuningRecord.new(PROJECT, REGION, request, JobState.PENDING)
        self.table.insert(made)
        self.id = made.job_id
        return made

    @property
    def tuning(self) -> TuningRecord:
        found = self.table.get(self.id)
        assert found is not None
        return found

    @property
    def trials(self) -> list[TrialRecord]:
        return self.table.trials(self.id)

    def states(self) -> list[str]:
        return [trial.state.value for trial in self.trials]

    def job(self, number: int) -> JobRecord:
        found = self.jobs.get(self.trials[number - 1].job_id)
        assert found is not None
        return found

    def begin(self, number: int) -> None:
        self.jobs.move(self.trials[number - 1].job_id, JobState.RUNNING)

    def report(self, number: int, *values: float, step: int = 1) -> None:
        file = metrics_file(
            self.home.jobs / self.trials[number - 1].job_id / "gcs", "workerpool0-0"
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"m": value, "global_step": step + at, "timestamp": 0})
                 for at, value in enumerate(values)]  # fmt: skip
        file.write_text("\n".join(lines) + "\n")

    def end(
        self, number: int, *values: float, state: JobState = JobState.SUCCEEDED, why: str = ""
    ) -> None:
        self.begin(number)
        if values:
            self.report(number, *values)
        error = (3, why) if why else None
        self.jobs.move(self.trials[number - 1].job_id, state, error=error)

    def log(self, number: int) -> str:
        return self.driver.home.jobs.joinpath(
            self.trials[number - 1].job_id, "logs", "workerpool0-0.log"
        ).read_text()


@pytest.fixture
def studied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Studied:
    return Studied(tmp_path, monkeypatch)


def test_without_a_tuning_job_there_is_nothing_to_do(studied: Studied) -> None:
    assert studied.driver.advance() is False


def test_a_trial_is_a_custom_job_with_arguments_and_a_folder_of_its_own(
    studied: Studied,
) -> None:
    package = {"pythonPackageSpec": {"pythonModule": "a"}}
    spec = {
        "workerPoolSpecs": [
            {"containerSpec": {"imageUri": "x", "args": ["--own"]}}, {}, package,
        ],
        "baseOutputDirectory": {"outputUriPrefix": "gs://b/out/"},
    }  # fmt: skip
    tuning = studied.make(
        trials=1, trialJobSpec=spec, labels={"k": "v"}, encryptionSpec={"kmsKeyName": "key"}
    )
    assert studied.driver.advance() is True
    [trial] = studied.trials
    job = studied.job(1)
    assert trial == TrialRecord(tuning.job_id, 1, job.job_id, job.name, {"n": 1})
    args = ["--n", "1"]
    assert job == replace(
        job,
        project=PROJECT,
        region=REGION,
        display_name="study-trial-1",
        labels={"k": "v"},
        state=JobState.QUEUED,
        request={
            "displayName": "study-trial-1",
            "labels": {"k": "v"},
            "encryptionSpec": {"kmsKeyName": "key"},
            "jobSpec": {
                "workerPoolSpecs": [
                    {"containerSpec": {"imageUri": "x", "args": ["--own", *args]}},
                    {},
                    {"pythonPackageSpec": {"pythonModule": "a", "args": args}},
                ],
                "baseOutputDirectory": {"outputUriPrefix": "gs://b/out/1"},
            },
        },
    )
    assert studied.submitted == [job.job_id]
    assert studied.log(1).endswith("trial 1 of study: --n 1 (GRID_SEARCH)\n")
    assert studied.tuning.spec == spec


def test_a_long_name_leaves_room_for_the_number(studied: Studied) -> None:
    studied.make(trials=1, displayName="n" * 128)
    studied.driver.advance()
    assert studied.job(1).display_name == "n" * 120 + "-trial-1"


def test_as_many_trials_run_as_asked_and_the_next_begins_when_one_ends(studied: Studied) -> None:
    studied.make()
    assert studied.driver.advance()
    assert (studied.states(), studied.tuning.state) == (["REQUESTED"] * 2, JobState.PENDING)
    studied.begin(1)
    studied.driver.advance()
    assert studied.states() == ["ACTIVE", "REQUESTED"]
    assert studied.trials[0].start_time == studied.job(1).start_time
    # The tuning job runs as soon as one of its trials has begun.
    studied.driver.advance()
    assert studied.tuning.state is JobState.RUNNING
    studied.end(1, 0.5)
    studied.driver.advance()
    assert studied.states() == ["SUCCEEDED", "REQUESTED", "REQUESTED"]
    studied.end(2, 0.7, 0.6)
    studied.end(3, 0.1)
    studied.driver.advance()
    assert studied.tuning.state is JobState.SUCCEEDED
    assert (studied.tuning.error_code, studied.tuning.error_message) == (None, None)
    assert [trial.measurement and trial.measurement.metrics for trial in studied.trials] == [
        {"m": 0.5}, {"m": 0.6}, {"m": 0.1},
    ]  # fmt: skip
    assert [trial.parameters for trial in studied.trials] == [{"n": 1}, {"n": 2}, {"n": 3}]
    job = studied.job(2)
    assert (studied.trials[1].start_time, studied.trials[1].end_time) == (
        job.start_time, job.end_time,
    )  # fmt: skip
    assert len(studied.submitted) == 3
    assert studied.driver.advance() is False


def test_a_grid_ends_with_its_last_point(studied: Studied) -> None:
    two = {**N, "integerValueSpec": {"minValue": "1", "maxValue": "2"}}
    studied.make(trials=9, parallel=4, study={"parameters": [two]})
    studied.driver.advance()
    assert [trial.parameters for trial in studied.trials] == [{"n": 1}, {"n": 2}]
    assert studied.tuning.state is JobState.PENDING


def test_the_best_measurement_counts_if_the_study_says_so(studied: Studied) -> None:
    studied.make(trials=1, study={"measurementSelectionType": "BEST_MEASUREMENT"})
    studied.driver.advance()
    studied.end(1, 0.3, 0.7, 0.5)
    studied.driver.advance()
    measured = studied.trials[0].measurement
    assert measured is not None
    assert (measured.step, measured.metrics) == (2, {"m": 0.7})


def test_what_a_trial_reports_is_kept_while_it_runs(studied: Studied) -> None:
    studied.make(trials=1)
    studied.driver.advance()
    studied.begin(1)
    studied.report(1, 0.3)
    studied.driver.advance()
    assert studied.table.measurements(studied.id) == {}
    studied.driver.advance()
    assert studied.table.measurements(studied.id) == {1: [Measurement(1, {"m": 0.3})]}
    with pytest.MonkeyPatch.context() as patched:  # a file that did not change is not read again
        patched.setattr(drivers, "read_report", lambda *_, **__: pytest.fail("it was read"))
        studied.driver.advance()
    studied.report(1, 0.3, 0.4)
    studied.driver.advance()
    assert [each.step for each in studied.table.measurements(studied.id)[1]] == [1, 2]


@pytest.mark.parametrize(
    ("state", "why", "reason"),
    [
        (JobState.FAILED, "exited", "exited"),
        (JobState.CANCELLED, "The job was cancelled.", "The job was cancelled."),
        (JobState.FAILED, "", "its CustomJob did not succeed"),
    ],
)
def test_a_trial_whose_job_does_not_succeed_is_infeasible(
    studied: Studied, state: JobState, why: str, reason: str
) -> None:
    studied.make(trials=4, maxFailedTrialCount=3)
    studied.driver.advance()
    studied.end(2, 0.5, state=state, why=why)
    studied.driver.advance()
    assert studied.states() == ["REQUESTED", "INFEASIBLE", "REQUESTED"]
    assert studied.trials[1].infeasible_reason == reason
    assert studied.trials[1].measurement is None


def test_a_trial_whose_job_was_deleted_is_infeasible(studied: Studied) -> None:
    studied.make(trials=4, maxFailedTrialCount=3)
    studied.driver.advance()
    studied.jobs.delete(studied.trials[1].job_id)
    studied.driver.advance()
    trial = studied.trials[1]
    assert (trial.state, trial.infeasible_reason, trial.start_time) == (
        TrialState.INFEASIBLE, "its CustomJob was deleted", None,
    )  # fmt: skip
    assert trial.end_time in TIMES.values()


def test_a_trial_without_a_measurement_is_infeasible(studied: Studied) -> None:
    studied.make(trials=4, maxFailedTrialCount=3)
    studied.driver.advance()
    studied.end(1)
    studied.driver.advance()
    assert studied.trials[0].infeasible_reason == (
        "The trial is infeasible: it reported no metric: CLOUD_ML_HP_METRIC_FILE was not written."
    )


def test_a_first_trial_that_fails_ends_the_job_and_all_others(studied: Studied) -> None:
    studied.make(trials=4, parallel=3)
    studied.driver.advance()
    studied.begin(2)
    studied.end(1, state=JobState.FAILED, why="exited")
    studied.driver.advance()
    assert studied.states() == ["INFEASIBLE", "STOPPING", "STOPPING"]
    assert [trial.infeasible_reason for trial in studied.trials[1:]] == [
        "The tuning job failed."
    ] * 2
    assert studied.cancelled == [trial.job_id for trial in studied.trials[1:]]
    assert studied.job(2).state is JobState.CANCELLING
    assert not studied.tuning.state.terminal
    for number in (2, 3):
        studied.jobs.move(studied.trials[number - 1].job_id, JobState.CANCELLED, error=(1, "c"))
    studied.driver.advance()
    assert studied.tuning.state is JobState.FAILED
    assert (studied.tuning.error_code, studied.tuning.error_message) == (
        3, "The first trial failed: exited",
    )  # fmt: skip
    assert studied.states() == ["INFEASIBLE"] * 3
    assert studied.trials[2].infeasible_reason == "The tuning job failed."


def test_a_cancelled_job_ends_when_its_trials_have(studied: Studied) -> None:
    studied.make(trials=3, parallel=2)
    studied.driver.advance()
    studied.begin(1)
    studied.table.move(studied.id, JobState.CANCELLING)
    studied.driver.advance()
    assert studied.states() == ["STOPPING", "STOPPING"]
    assert studied.tuning.state is JobState.CANCELLING
    studied.driver.advance()
    assert studied.cancelled == [trial.job_id for trial in studied.trials]
    for trial in studied.trials:
        studied.jobs.move(trial.job_id, JobState.CANCELLED, error=(1, "c"))
    studied.driver.advance()
    assert (studied.tuning.state, studied.tuning.error_code, studied.tuning.error_message) == (
        JobState.CANCELLED, 1, "The job was cancelled.",
    )  # fmt: skip
    assert {trial.infeasible_reason for trial in studied.trials} == {
        "The tuning job was cancelled."
    }
    assert len(studied.submitted) == 2


MEDIAN = {"medianAutomatedStoppingSpec": {}}


def test_a_trial_that_is_stopped_early_counts_with_what_it_measured(studied: Studied) -> None:
    studied.make(trials=2, parallel=1, study=MEDIAN)
    studied.driver.advance()
    studied.end(1, 0.9, 0.9)
    studied.driver.advance()
    studied.begin(2)
    studied.driver.advance()
    studied.report(2, 0.1)
    studied.driver.advance()
    assert studied.states() == ["SUCCEEDED", "STOPPING"]
    assert studied.cancelled == [studied.trials[1].job_id]
    assert "trial 2 is stopped early: its best m at step 1, 0.1, is worse than 0.9" in studied.log(
        2
    )
    studied.driver.advance()
    assert len(studied.cancelled) == 1
    studied.jobs.move(studied.trials[1].job_id, JobState.CANCELLED, error=(1, "c"))
    studied.driver.advance()
    assert studied.states() == ["SUCCEEDED", "SUCCEEDED"]
    last = studied.trials[1]
    assert last.measurement is not None
    assert (last.measurement.metrics, last.infeasible_reason) == ({"m": 0.1}, None)
    assert studied.tuning.state is JobState.SUCCEEDED


def test_a_trial_that_is_stopped_early_has_no_reason_to_be_infeasible(studied: Studied) -> None:
    studied.make(trials=3, parallel=1, study=MEDIAN)
    studied.driver.advance()
    studied.end(1, 0.9)
    studied.driver.advance()
    studied.begin(2)
    studied.driver.advance()
    studied.report(2, 0.1)
    studied.driver.advance()
    assert studied.states() == ["SUCCEEDED", "STOPPING"]
    studied.table.move(studied.id, JobState.CANCELLING)
    studied.driver.advance()
    assert studied.trials[1].infeasible_reason is None


def test_without_a_rule_no_trial_is_stopped(studied: Studied) -> None:
    studied.make(trials=2, parallel=1)
    studied.driver.advance()
    studied.end(1, 0.9)
    studied.driver.advance()
    studied.begin(2)
    studied.report(2, 0.1)
    for _ in range(3):
        studied.driver.advance()
    assert studied.states() == ["SUCCEEDED", "ACTIVE"]
    assert studied.cancelled == []


@pytest.mark.parametrize(
    ("replicas", "mib", "started"),
    [(1, 256 * 3, 3), (1, 256 * 3 - 1, 2), (2, 256 * 3, 1), (2, 256 * 4, 2), (3, 0, 1)],
)
def test_no_more_trials_begin_than_the_memory_carries(
    studied: Studied, replicas: int, mib: int, started: int
) -> None:
    studied.free = mib << 20
    pool = {"containerSpec": {"imageUri": "x"}}
    pools = [pool, {}, {**pool, "replicaCount": str(replicas - 1)}] if replicas > 1 else [pool]
    studied.make(trials=9, parallel=4, trialJobSpec={"workerPoolSpecs": pools})
    studied.driver.advance()
    assert len(studied.trials) == started


def test_trials_that_run_count_for_the_memory_they_have(studied: Studied) -> None:
    studied.make(trials=9, parallel=3)
    studied.free = 2 * 256 << 20
    studied.driver.advance()
    assert len(studied.trials) == 2
    studied.free = 0
    studied.driver.advance()
    assert len(studied.trials) == 2
    studied.free = 256 << 20
    studied.driver.advance()
    assert len(studied.trials) == 3


def test_a_mistake_of_the_local_cloud_fails_the_job(
    studied: Studied, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    studied.make(trials=3)
    studied.driver.advance()
    monkeypatch.setattr(drivers.progress, "next_step", lambda *_, **__: 1 / 0)
    studied.driver.advance()
    text = "Internal error of the local cloud: ZeroDivisionError: division by zero"
    assert (studied.tuning.state, studied.tuning.error_code, studied.tuning.error_message) == (
        JobState.FAILED, 13, text,
    )  # fmt: skip
    assert studied.states() == ["STOPPING"] * 2
    assert {trial.infeasible_reason for trial in studied.trials} == {text}
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["RANDOM_SEARCH", ""])
def test_the_same_study_begins_with_the_same_trials(studied: Studied, algorithm: str) -> None:
    found: list[list[dict[str, Any]]] = []
    for _ in range(2):
        studied.make(trials=2, study={"algorithm": algorithm})
        studied.driver.advance()
        found.append([trial.parameters for trial in studied.trials])
        name = algorithm or "by optuna's TPE sampler, which is not Google's algorithm"
        assert studied.log(1).endswith(f"({name})\n")
    assert found[0] == found[1]
    assert all(1 <= each["n"] <= 9 for each in found[0])
