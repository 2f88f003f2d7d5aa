"""One tuning job step by step: which trials are started, how they are judged, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.home import Home
from localgcp.runner.environment import metrics_file
from localgcp.tuning import driver as drivers
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import (
    TrialRecord,
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
