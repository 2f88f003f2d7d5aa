"""The methods for tuning jobs over the tables alone: whole jobs, trials, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex
from google.protobuf import json_format

from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.tuning.records import Measurement, TrialRecord, TrialState, TuningTable
from localgcp.tuning.service import Tuning, TuningService
from localgcp.vertex import checks
from localgcp.vertex.records import JobState, JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

PARENT = f"projects/{PROJECT}/locations/us-central1"
PLACE = f"projects/{project_number(PROJECT)}/locations/us-central1"
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


def test_a_new_tuning_job_comes_back_as_it_was_sent(studies: Studies) -> None:
    own = {"labels": {"a": "b"}, "maxFailedTrialCount": 1}
    made = studies.create(**own, name="mine", state="JOB_STATE_FAILED", trials=[{"id": "1"}])
    number = made["name"].rpartition("/")[2]
    assert made == {
        **STUDY,
        **own,
        "name": f"{PLACE}/hyperparameterTuningJobs/{number}",
        "state": "JOB_STATE_PENDING",
        "createTime": made["createTime"],
        "updateTime": made["createTime"],
    }
    assert studies.woken == 1
    assert studies.get(made["name"]) == made
    assert studies.get(f"{PARENT}/hyperparameterTuningJobs/{number}") == made


def test_all_bad_fields_are_told_by_their_names_in_a_tuning_job(studies: Studies) -> None:
    code, text = refused(
        studies.create, displayName="", maxTrialCount=0, trialJobSpec={"workerPoolSpecs": []}
    )
    assert (code, text) == (
        "INVALID_ARGUMENT",
        "List of found errors:\t1.Field: display_name; Message: Required field is not set.\t "
        "2.Field: trial_job_spec.worker_pool_specs; Message: At least one worker pool should be "
        "specified.\t 3.Field: max_trial_count; Message: Must be greater than 0.\t",
    )
    assert (studies.table.list(), studies.woken) == ([], 0)


def test_what_this_machine_does_not_run_is_refused(studies: Studies) -> None:
    studies.reason = "no engine"  # type: ignore[assignment]
    assert refused(studies.create) == ("FAILED_PRECONDITION", "no engine")


def trial(tuning: str, number: int, job_id: str, **changes: Any) -> TrialRecord:
    return TrialRecord(tuning, number, job_id, f"jobs/{job_id}", {"n": 3, "c": "a"}, **changes)


TIME = "2026-01-02T03:04:05Z"


def test_trials_are_shown_with_all_that_they_reported(studies: Studies) -> None:
    made = studies.create()
    id_ = made["name"].rpartition("/")[2]
    rows = [
        trial(id_, 1, "11", state=TrialState.SUCCEEDED, start_time=TIME, end_time=TIME,
              measurement=None),
        trial(id_, 2, "12", state=TrialState.INFEASIBLE, start_time=TIME,
              infeasible_reason="why"),
        trial(id_, 3, "13"),
    ]  # fmt: skip
    for row in rows:
        studies.table.add_trial(row, job_row(row.job_id, {}))
    measured = Measurement(7, {"m": 0.5, "k": 2.0}, 1.25)
    studies.table.put_measurements(rows[0], [Measurement(1, {"m": 0.25}), measured])
    active = trial(id_, 3, "13", state=TrialState.ACTIVE, measurement=measured)
    studies.table.change_trial(active)
    metrics = [{"metricId": "m", "value": 0.5}, {"metricId": "k", "value": 2.0}]
    last = {"stepCount": "7", "elapsedDuration": "1.250s", "metrics": metrics}
    values = [{"parameterId": "n", "value": 3.0}, {"parameterId": "c", "value": "a"}]
    assert studies.get(made["name"])["trials"] == [
        {
            "id": "1",
            "state": "SUCCEEDED",
            "parameters": values,
            "customJob": "jobs/11",
            "startTime": TIME,
            "endTime": TIME,
            "measurements": [
                {
                    "stepCount": "1",
                    "elapsedDuration": "0s",
                    "metrics": [{"metricId": "m", "value": 0.25}],
                },
                last,
            ],
        },
        {
            "id": "2",
            "state": "INFEASIBLE",
            "parameters": values,
            "customJob": "jobs/12",
            "startTime": TIME,
            "infeasibleReason": "why",
        },
        {
            "id": "3",
            "state": "ACTIVE",
            "parameters": values,
            "customJob": "jobs/13",
            "finalMeasurement": last,
        },
    ]
    listed = studies.service.list_hyperparameter_tuning_jobs(
        vertex.ListHyperparameterTuningJobsRequest(parent=PARENT)
    )
    assert [body_of(each) for each in listed.hyperparameter_tuning_jobs] == [made]
    assert listed.next_page_token == ""


def test_a_cancel_wakes_the_driver(studies: Studies) -> None:
    name = studies.create()["name"]
    request = vertex.CancelHyperparameterTuningJobRequest(name=name)
    for _ in range(2):
        studies.service.cancel_hyperparameter_tuning_job(request)
    assert studies.get(name)["state"] == "JOB_STATE_CANCELLING"
    assert studies.woken == 3


def test_a_tuning_job_that_ended_is_deleted(studies: Studies) -> None:
    name = studies.create()["name"]
    request = vertex.DeleteHyperparameterTuningJobRequest(name=name)
    delete = studies.service.delete_hyperparameter_tuning_job
    assert refused(delete, request) == (
        "FAILED_PRECONDITION",
        "The HyperparameterTuningJob is in state JOB_STATE_PENDING and cannot be deleted; cancel "
        f"it first. ({name})",
    )
    studies.table.move(name.rpartition("/")[2], JobState.FAILED)
    assert delete(request).done
    assert studies.table.list() == []
    assert refused(delete, request) == (
        "NOT_FOUND", f"The HyperparameterTuningJob does not exist: {name}",
    )  # fmt: skip


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
