"""The official client against tuning jobs."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from google.api_core import exceptions

from localgcp.inventory.store import project_number
from tests.unit.localcloud.conftest import PARENT, PROJECT, Cloud, command_job, wait_until
from tests.unit.localcloud.tuning.studies import (
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


def test_trials_run_and_report_and_the_job_succeeds_with_their_measurements(cloud: Cloud) -> None:
    name = submit(cloud, tuning(labels={"request-id": "abc"}))
    assert name.startswith(f"projects/{project_number(PROJECT)}/locations/us-central1/hyper")
    created = get(cloud, name)
    assert created.state in (JobState.JOB_STATE_PENDING, JobState.JOB_STATE_RUNNING)
    done = wait(cloud, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED
    assert [trial.id for trial in done.trials] == ["1", "2", "3", "4"]
    for trial in done.trials:
        assert trial.state == TrialState.SUCCEEDED
        lr = trial.parameters[0]
        assert lr.parameter_id == "lr"
        assert trial.final_measurement.step_count == 7
        metric = trial.final_measurement.metrics[0]
        assert metric.metric_id == "accuracy"
        assert metric.value == pytest.approx(1 - (float(lr.value) - 0.3) ** 2)
        job = cloud.client.get_custom_job(name=trial.custom_job)
        assert job.display_name == f"tuned-trial-{trial.id}"
        assert job.labels == {"request-id": "abc"}
        assert job.job_spec.worker_pool_specs[0].container_spec.args == ["--lr", str(lr.value)]
        assert created.create_time <= trial.start_time <= trial.end_time
    assert done.start_time
    assert done.end_time
    assert len({trial.custom_job for trial in done.trials}) == 4


def test_the_whole_job_comes_back_as_it_was_sent_and_lists_leave_out_the_trials(
    cloud: Cloud,
) -> None:
    sent = tuning(study={"measurement_selection_type": "BEST_MEASUREMENT"}, labels={"a": "b"})
    done = run(cloud, sent)
    assert done.study_spec.measurement_selection_type.name == "BEST_MEASUREMENT"
    assert done.trial_job_spec.worker_pool_specs[0].container_spec.args == []
    for text, count in (("labels.a=b", 1), ("labels.a=c", 0), ('display_name="tuned"', 1)):
        request = {"parent": PARENT, "filter": text}
        found = list(cloud.client.list_hyperparameter_tuning_jobs(request=request))
        assert len(found) == count
        assert all(not job.trials and job.study_spec == done.study_spec for job in found)


def test_a_list_pages_newest_first_and_knows_no_custom_jobs_token(cloud: Cloud) -> None:
    names = [submit(cloud, tuning(python(SLEEP), trials=1)) for _ in range(3)]
    client = cloud.client
    request: dict[str, Any] = {"parent": PARENT, "page_size": 2}
    pages = list(client.list_hyperparameter_tuning_jobs(request=request).pages)
    assert [job.name for page in pages for job in page.hyperparameter_tuning_jobs] == names[::-1]
    with pytest.raises(exceptions.InvalidArgument, match="another request"):
        client.list_custom_jobs({"parent": PARENT, "page_token": pages[0].next_page_token})
    for name in names:
        client.cancel_hyperparameter_tuning_job(name=name)
    for name in names:
        assert wait(cloud, name).error.code == 1


def test_create_lists_all_bad_fields_at_once(cloud: Cloud) -> None:
    bad = tuning(
        {"worker_pool_specs": [{"container_spec": {}}]},
        trials=0,
        parallel=0,
        parameters=[{"parameter_id": "a b", "double_value_spec": {"min_value": 2, "max_value": 1}}],
    )
    with pytest.raises(exceptions.InvalidArgument) as caught:
        submit(cloud, {**bad, "display_name": ""})
    text = caught.value.message
    assert text.startswith("List of found errors:\t1.Field: display_name; Message: ")
    for field in (
        "trial_job_spec.worker_pool_specs[0].machine_spec.machine_type",
        "max_trial_count",
        "parallel_trial_count",
        "study_spec.parameters[0].parameter_id",
    ):
        assert f"Field: {field}; Message: " in text
    assert "min_value 2 must not be greater than max_value 1" in text
    assert table(cloud).list() == []


def test_create_needs_the_account_of_the_trials(cloud: Cloud) -> None:
    spec = command_job("true", service_account="nobody@x")["job_spec"]
    with pytest.raises(exceptions.PermissionDenied, match="act as service_account: nobody@x"):
        submit(cloud, tuning(spec))


def test_an_unknown_tuning_job_is_not_found_nor_is_a_custom_job_one(cloud: Cloud) -> None:
    name = f"{PARENT}/hyperparameterTuningJobs/1"
    for call in (
        cloud.client.get_hyperparameter_tuning_job,
        cloud.client.cancel_hyperparameter_tuning_job,
        cloud.client.delete_hyperparameter_tuning_job,
    ):
        with pytest.raises(exceptions.NotFound, match="HyperparameterTuningJob does not exist"):
            call(name=name)
    job = cloud.submit(command_job("true")).name
    with pytest.raises(exceptions.NotFound):
        get(cloud, job.replace("customJobs", "hyperparameterTuningJobs"))


def test_a_running_job_is_not_deleted_and_an_ended_one_goes_with_its_trials(cloud: Cloud) -> None:
    name = submit(cloud, tuning(python(SLEEP), trials=2))
    wait_until(lambda: len(get(cloud, name).trials) == 2)
    with pytest.raises(exceptions.FailedPrecondition, match="cancel it first"):
        cloud.client.delete_hyperparameter_tuning_job(name=name)
    cloud.client.cancel_hyperparameter_tuning_job(name=name)
    trials = wait(cloud, name).trials
    cloud.client.delete_hyperparameter_tuning_job(name=name).result(timeout=60)
    with pytest.raises(exceptions.NotFound):
        get(cloud, name)
    with pytest.raises(exceptions.NotFound):
        cloud.client.get_custom_job(name=trials[0].custom_job)


def test_rest_makes_reads_lists_and_cancels_a_tuning_job(cloud: Cloud) -> None:
    base = f"http://127.0.0.1:{cloud.port}/v1/{PARENT}/hyperparameterTuningJobs"
    pool = {
        "replicaCount": 1,
        "machineSpec": {"machineType": "n1-standard-4"},
        "containerSpec": {"imageUri": "python:3.11", "command": ["sleep", "600"]},
    }
    body = {
        "displayName": "rest",
        "maxTrialCount": 1,
        "parallelTrialCount": 1,
        "studySpec": {
            "metrics": [{"metricId": "m", "goal": "MINIMIZE"}],
            "parameters": [
                {"parameterId": "n", "integerValueSpec": {"minValue": "1", "maxValue": "1"}}
            ],
        },
        "trialJobSpec": {"workerPoolSpecs": [pool]},
    }
    made = _call(base, body)
    assert made["state"] == "JOB_STATE_PENDING"
    at = base.rpartition("/projects/")[0] + "/" + made["name"]
    wait_until(lambda: _call(at).get("trials"))
    trial = _call(at)["trials"][0]
    assert trial["parameters"] == [{"parameterId": "n", "value": 1}]
    assert len(_call(base)["hyperparameterTuningJobs"]) == 1
    _call(f"{at}:cancel", {})
    wait_until(lambda: _call(at)["state"] == "JOB_STATE_CANCELLED")


def _call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)
