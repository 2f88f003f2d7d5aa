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


def test_server_settles_trials_that_ended_without_one(studied: Studied) -> None:
    studied.make(trials=1)
    studied.driver.advance()
    studied.table.move(studied.id, JobState.FAILED)
    studied.end(1, 0.5)
    studied.driver.start()
    studied.driver.stop()
    assert studied.states() == ["SUCCEEDED"]
