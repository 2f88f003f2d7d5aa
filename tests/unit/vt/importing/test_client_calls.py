"""Calls of the official client: the message that each of them would send, whole."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from vertex_training_cli.importing.command_lines import NO_FILES
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sdk_calls import jobs_in

INIT = "aiplatform.init(project='acme', location='europe-west4', staging_bucket='gs://acme-s')\n"
DISK = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
N1 = {"machineType": "n1-standard-4"}
BY_REQUEST = "the client makes a folder in gs://acme-s for each job: it is named by the request id"


def read(code: str) -> list[ImportedJob]:
    found, left_out = jobs_in([("s", ast.parse(INIT + code))], "nameless", NO_FILES)
    assert left_out == []
    return found


def one(code: str) -> ImportedJob:
    [found] = read(code)
    return found


CONTAINER = "aiplatform.CustomContainerTrainingJob('My Job', 'a/b/c:1'{}).run({})\n"


def container(given: str = "", run: str = "") -> ImportedJob:
    return one(CONTAINER.format(f", {given}" if given else "", run))


def pool(count: int | str = 1, machine: Any = None, disk: Any = None, **task: Any) -> Any:
    spec = {"containerSpec": {"imageUri": "a/b/c:1", **task}}
    return {"replicaCount": count, "machineSpec": machine or N1, **spec, "diskSpec": disk or DISK}


@pytest.mark.parametrize(
    ("run", "pools"),
    [
        ("replica_count=3", [pool(), pool(2)]),
        ("replica_count=N", [pool(), pool("<YOUR_N> - 1")]),
        ("accelerator_type='NVIDIA_L4', accelerator_count=2",
         [pool(machine={**N1, "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2})]),
        ("args=['--a', 1]", [pool(args=["--a", "1"])]),
        ("environment_variables={'A': 1}", [pool(env=[{"name": "A", "value": "1"}])]),
        ("environment_variables=more",
         [pool(env=[{"name": "ENVIRONMENT_VARIABLES", "value": "<YOUR_MORE>"}])]),
        ("reservation_affinity_type='SPECIFIC_RESERVATION', reservation_affinity_key='k', "
         "reservation_affinity_values=['v']",
         [pool(machine={**N1, "reservationAffinity": {
             "reservationAffinityType": "SPECIFIC_RESERVATION", "key": "k", "values": ["v"]}})]),
    ],
)  # fmt: skip
def test_the_pools_are_a_chief_and_workers_alike(run: str, pools: Any) -> None:
    assert container(run=run).spec["workerPoolSpecs"] == pools


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        ("dataset=d", "dataset is left out: managed data sets belong to training pipelines: read "
         "the bucket instead"),
        ("model_display_name='m'", "model_display_name is left out: a CustomJob uploads no model: "
         "its code writes to AIP_MODEL_DIR"),
        ("tomorrow=1", "the client's option tomorrow is not read (s, line 2)"),
    ],
)  # fmt: skip
def test_what_has_no_place_in_a_job_is_said(given: str, remark: str) -> None:
    assert container(run=given).remarks == [BY_REQUEST, remark]


POOL = "{'machine_spec': {'machine_type': 'm'}, 'replica_count': 1}"
READ = {"machineSpec": {"machineType": "m"}, "replicaCount": 1}


def search(spec: str, more: str = "") -> ImportedJob:
    inner = f"aiplatform.CustomJob('in', [{POOL}])"
    given = f"'hp', {inner}, {{'acc': 'maximize'}}, {{'x': {spec}}}{more}"
    return one(f"aiplatform.HyperparameterTuningJob({given}).run()\n")


@pytest.mark.parametrize(
    ("spec", "parameter"),
    [
        ("hpt.DoubleParameterSpec(0, 1, 'unspecified')",
         {"doubleValueSpec": {"minValue": 0, "maxValue": 1}}),
        ("hpt.DoubleParameterSpec(0, 1, S)",
         {"doubleValueSpec": {"minValue": 0, "maxValue": 1}, "scaleType": "<YOUR_S>"}),
        ("hpt.CategoricalParameterSpec(['a', 'b'])",
         {"categoricalValueSpec": {"values": ["a", "b"]}}),
        ("given", {"categoricalValueSpec": {"values": "<YOUR_GIVEN>"}}),
    ],
)  # fmt: skip
def test_a_parameter_of_a_search_has_its_range(spec: str, parameter: Any) -> None:
    found = search(spec)
    assert found.study["studySpec"]["parameters"] == [{"parameterId": "x", **parameter}]
    assert found.spec["workerPoolSpecs"] == [READ]


def test_a_search_has_its_counts_and_its_algorithm() -> None:
    spec = "hpt.DiscreteParameterSpec([1], None)"
    more = (
        ", 12, 3, max_failed_trial_count=2, search_algorithm='grid', measurement_selection='last'"
    )
    parameters = [{"parameterId": "x", "discreteValueSpec": {"values": [1]}}]
    assert search(spec, more).study == {
        "maxTrialCount": 12, "parallelTrialCount": 3, "maxFailedTrialCount": 2,
        "displayName": "hp",
        "studySpec": {
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}], "parameters": parameters,
            "algorithm": "GRID_SEARCH", "measurementSelectionType": "LAST_MEASUREMENT",
        },
    }  # fmt: skip
    bare = search(spec)
    assert bare.study == {
        "maxTrialCount": "<MAX_TRIAL_COUNT>", "parallelTrialCount": "<PARALLEL_TRIAL_COUNT>",
        "displayName": "hp",
        "studySpec": {
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}], "parameters": parameters,
            "measurementSelectionType": "BEST_MEASUREMENT",
        },
    }  # fmt: skip


JOB = "job = aiplatform.CustomContainerTrainingJob('j', 'a/b/c:1')\n"
UNREAD = Note("calls of `job.run` by another name are not read", "s, line 3")


@pytest.mark.parametrize(
    "code",
    [
        "run = job.run\nrun(service_account='me')",
        "(go := job.run)\ngo(service_account='me')",
        "go = {'a': job.run}\ngo['a'](service_account='me')",
        "class C:\n def __init__(self): self.go = job.run\nC().go(service_account='me')",
        "def f(go): go(service_account='me')\nf(job.run)",
        "go = job.run\nif X: go(service_account='me')\nelse: go(service_account='me')",
    ],
)
def test_a_method_of_a_job_is_read_by_its_other_name(code: str) -> None:
    found = one(JOB + code)
    assert found.spec["serviceAccount"] == "me"
    assert UNREAD not in found.notes


@pytest.mark.parametrize(
    "code",
    [
        "Thread(target=job.run, kwargs={'service_account': 'me'}).start()",
        "go = functools.partial(job.run, service_account='me')\ngo()",
        "pool.submit(job.run, service_account='me')",
        "go = job.run",
    ],
)
def test_a_method_that_something_else_calls_is_told(code: str) -> None:
    assert UNREAD in one(JOB + code).notes
