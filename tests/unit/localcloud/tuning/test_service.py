"""The official client against tuning jobs."""

from __future__ import annotations

import pytest
from google.api_core import exceptions

from tests.unit.localcloud.conftest import PARENT, Cloud, command_job, wait_until
from tests.unit.localcloud.tuning.studies import (
    get,
    python,
    run,
    submit,
    tuning,
    wait,
)

SLEEP = "import time; time.sleep(600)"


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
