"""The methods for tuning jobs over the tables alone: whole jobs, trials, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.protobuf import json_format

from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.tuning.records import TrialRecord, TuningTable
from localgcp.tuning.service import Tuning, TuningService
from localgcp.vertex import checks
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

PARENT = f"projects/{PROJECT}/locations/us-central1"
POOL: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": "us-docker.pkg.dev/x/y/z:1", "command": ["true"]},
}
STUDY: dict[str, Any] = {
    "displayName": "study",
    "maxTrialCount": 4,
    "parallelTrialCount": 2,
    "studySpec": {
        "metrics": [{"metricId": "m", "goal": "MAXIMIZE"}],
        "parameters": [
            {"parameterId": "n", "integerValueSpec": {"minValue": "1", "maxValue": "9"}}
        ],
    },
    "trialJobSpec": {"workerPoolSpecs": [POOL]},
}


class Studies:
    """The service; how often its driver was woken is counted."""

    def __init__(self, root: Path) -> None:
        self.home, path = Home(root, root), root / "cloud.sqlite"
        store, self.jobs = Store(path), JobTable(path)
        store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        self.jobs.list()
        self.table, self.woken, self.reason = TuningTable(path), 0, None
        jobs = JobService(store, self.jobs, self, lambda _spec: self.reason)
        self.service = TuningService(jobs, self.table, self)

    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...

    def wake(self) -> None:
        self.woken += 1

    def create(self, **changes: Any) -> dict[str, Any]:
        job = vertex.HyperparameterTuningJob()
        json_format.ParseDict({**STUDY, **changes}, vertex.HyperparameterTuningJob.pb(job))
        request = vertex.CreateHyperparameterTuningJobRequest(
            parent=PARENT, hyperparameter_tuning_job=job
        )
        return body_of(self.service.create_hyperparameter_tuning_job(request))

    def get(self, name: str) -> dict[str, Any]:
        request = vertex.GetHyperparameterTuningJobRequest(name=name)
        return body_of(self.service.get_hyperparameter_tuning_job(request))


def body_of(job: Any) -> dict[str, Any]:
    return json_format.MessageToDict(vertex.HyperparameterTuningJob.pb(job))


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call(*args, **more)
    return error.value.code.name, error.value.message


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Studies:
    monkeypatch.setattr(checks, "_installed_limits", tuple)
    return Studies(tmp_path)


def test_what_this_machine_does_not_run_is_refused(studies: Studies) -> None:
    studies.reason = "no engine"  # type: ignore[assignment]
    assert refused(studies.create) == ("FAILED_PRECONDITION", "no engine")


def trial(tuning: str, number: int, job_id: str, **changes: Any) -> TrialRecord:
    return TrialRecord(tuning, number, job_id, f"jobs/{job_id}", {"n": 3, "c": "a"}, **changes)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("x", "INVALID_ARGUMENT",
         "Invalid resource name: 'x'; expected a HyperparameterTuningJob."),
        (f"projects/{PROJECT}/locations/us-east1/hyperparameterTuningJobs/ID", "NOT_FOUND",
         "The HyperparameterTuningJob does not exist: "
         f"projects/{PROJECT}/locations/us-east1/hyperparameterTuningJobs/ID"),
    ],
)  # fmt: skip
def test_a_tuning_job_of_another_place_is_not_found(
    studies: Studies, name: str, code: str, text: str
) -> None:
    id_ = studies.create()["name"].rpartition("/")[2]
    found = refused(studies.get, name.replace("ID", id_))
    assert found == (code, text.replace("ID", id_))


def test_others_ask_which_jobs_are_trials(studies: Studies) -> None:
    id_ = studies.create()["name"].rpartition("/")[2]
    for number in (1, 2):
        row = trial(id_, number, f"1{number}")
        studies.table.add_trial(row, job_row(row.job_id, {}))
    tuning = Tuning(studies.home)
    assert tuning.trials(id_) == [("1", "11"), ("2", "12")]
    assert (tuning.trial_id("12"), tuning.trial_id("13")) == ("2", None)
    assert (tuning.is_trial("12"), tuning.is_trial("13")) == (True, False)
    found = tuning.job(id_)
    assert found is not None
    assert found.display_name == "study"
    assert tuning.job("1") is None
    tuning.stop()
