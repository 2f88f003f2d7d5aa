"""A request as the rules read it: what is there, what the service takes where nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.rules.context import FILE_ONLY, Context
from vertex_training.customjob.rules.job import Job, Pool

AT = ("jobSpec", "workerPoolSpecs", 2)


def pool(machine: dict[str, Any] | None = None, **spec: Any) -> Pool:
    return Pool(2, {**({} if machine is None else {"machineSpec": machine}), **spec})


def test_an_empty_pool_has_what_the_service_takes() -> None:
    it = pool()
    assert (it.path, it.machine_path, it.task_path) == (
        AT, (*AT, "machineSpec"), (*AT, ""),
    )  # fmt: skip
    assert (it.machine, it.machine_type, it.shape, it.accelerator, it.count) == (
        {},
        "",
        None,
        "",
        0,
    )
    assert (it.gpu, it.required, it.affinity, it.reserved, it.unreserved) == (
        False, False, None, False, True,
    )  # fmt: skip
    assert (it.replicas, it.task_name, it.task, it.image, it.env) == (1, "", {}, "", [])
    assert (it.is_reduction_server, it.words(), list(it.texts())) == (False, [], [])


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("NVIDIA_L4", "NVIDIA_L4"), ("ACCELERATOR_TYPE_UNSPECIFIED", ""), ("TPU_V2", "TPU_V2"),
        ("UNSPECIFIED_X", "UNSPECIFIED_X"), ("", ""),
    ],
)  # fmt: skip
def test_an_accelerator_that_is_unspecified_is_none(name: str, accelerator: str) -> None:
    it = pool({"acceleratorType": name, "acceleratorCount": 3})
    assert (it.accelerator, it.count) == (accelerator, 3)


@pytest.mark.parametrize(
    ("machine", "gpu", "required"),
    [
        # g2 and a2 machines come with GPUs; n1 get those that are named; ct5lp are TPUs.
        ({"machineType": "g2-standard-8"}, True, True),
        ({"machineType": "a2-highgpu-1g"}, True, True),
        ({"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4"}, True, True),
        ({"machineType": "n1-standard-4"}, False, False),
        ({"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4"}, True, False),
        ({"machineType": "n1-standard-4", "acceleratorType": "TPU_V2"}, False, False),
        ({"machineType": "cloud-tpu", "acceleratorType": "TPU_V3"}, False, True),
        ({"machineType": "x9-none"}, False, False),
        ({"machineType": "x9-none", "acceleratorType": "NVIDIA_NEW"}, True, False),
    ],
)
def test_a_machine_has_gpus_by_its_type_or_by_name(
    machine: dict[str, Any], gpu: bool, required: bool
) -> None:
    assert (pool(machine).gpu, pool(machine).required) == (gpu, required)


@pytest.mark.parametrize(
    ("affinity", "reserved", "unreserved"),
    [
        (None, False, True),
        ({}, False, False),
        ({"reservationAffinityType": "TYPE_UNSPECIFIED"}, False, False),
        ({"reservationAffinityType": "NO_RESERVATION"}, False, True),
        ({"reservationAffinityType": "ANY_RESERVATION"}, True, False),
        ({"reservationAffinityType": "SPECIFIC_RESERVATION"}, True, False),
    ],
)
def test_a_pool_asks_for_a_reservation_for_none_or_it_is_not_known(
    affinity: dict[str, str] | None, reserved: bool, unreserved: bool
) -> None:
    it = pool({} if affinity is None else {"reservationAffinity": affinity})
    assert (it.affinity, it.reserved, it.unreserved) == (affinity, reserved, unreserved)


def test_a_pool_runs_a_container_or_a_package() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C", "value": "3"}]
    task = {
        "imageUri": "i",
        "executorImageUri": "e",
        "command": ["c"],
        "args": ["a", "b"],
        "env": env,
    }
    container = pool(containerSpec=task, replicaCount=3)
    assert (container.task_name, container.task, container.image_field, container.image) == (
        "containerSpec", task, "imageUri", "i",
    )  # fmt: skip
    assert (container.replicas, container.env) == (3, env)
    at = (*AT, "containerSpec")
    words = [((*at, "command", 0), "c"), ((*at, "args", 0), "a"), ((*at, "args", 1), "b")]
    assert container.words() == words
    assert list(container.texts()) == [
        *words, ((*at, "env", 0, "value"), "1"), ((*at, "env", 2, "value"), "3"),
    ]  # fmt: skip
    package = pool(pythonPackageSpec=task)
    assert (package.task_name, package.image_field, package.image) == (
        "pythonPackageSpec", "executorImageUri", "e",
    )  # fmt: skip
    assert pool(pythonPackageSpec={}, containerSpec=task).task_name == "containerSpec"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest", True),
        ("us-docker.pkg.dev/p/r/reduction:latest", False),
        ("", False),
    ],
)
def test_a_reduction_server_is_known_by_its_image(image: str, expected: bool) -> None:
    assert pool(containerSpec={"imageUri": image}).is_reduction_server is expected


def test_a_job_without_anything_is_one_of_its_own() -> None:
    it = Job({})
    assert (it.context, it.kind, it.spec, it.pools, it.nodes) == (FILE_ONLY, CUSTOM_JOB, {}, (), 0)
    assert (it.parallel, it.region, it.scheduling, it.strategy) == (1, None, {}, "STANDARD")
    assert (it.account, it.output, it.network, it.attachment) == ("", "", "", "")
    assert Job({"jobSpec": {"pscInterfaceConfig": {}}}).attachment == ""


def test_a_job_has_the_pools_that_are_not_skipped() -> None:
    specs = [{"replicaCount": 2}, {}, {"containerSpec": {}}]
    given = {
        "workerPoolSpecs": specs, "serviceAccount": "a@b", "scheduling": {"timeout": "1s"},
        "baseOutputDirectory": {"outputUriPrefix": "gs://o/x"}, "network": "n",
        "pscInterfaceConfig": {"networkAttachment": "a"},
    }  # fmt: skip
    it = Job({"jobSpec": given}, Context(region="us-east1"))
    assert (it.network, it.attachment) == ("n", "a")
    assert it.pools == (Pool(0, specs[0]), Pool(2, specs[2]))
    assert (it.nodes, it.region, it.account, it.output) == (3, "us-east1", "a@b", "gs://o/x")
    assert (it.spec, it.scheduling) == (given, {"timeout": "1s"})


@pytest.mark.parametrize(
    ("tuning", "parallel"),
    [
        ({}, 1),
        ({"maxTrialCount": 9}, 1),
        ({"parallelTrialCount": 9}, 1),
        ({"maxTrialCount": 9, "parallelTrialCount": 3}, 3),
        ({"maxTrialCount": 2, "parallelTrialCount": 3}, 2),
        ({"maxTrialCount": 0, "parallelTrialCount": 3}, 1),
    ],
)
def test_a_tuning_job_runs_no_more_trials_at_once_than_it_has(
    tuning: dict[str, int], parallel: int
) -> None:
    it = Job({}, tuning=tuning)
    assert (it.kind, it.parallel) == (TUNING_JOB, parallel)


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ("SPOT", "SPOT"), ("LOW_COST", "SPOT"), ("FLEX_START", "FLEX_START"),
        ("STANDARD", "STANDARD"), ("ON_DEMAND", "STANDARD"), ("STRATEGY_UNSPECIFIED", "STANDARD"),
    ],
)  # fmt: skip
def test_a_strategy_has_one_name(given: str, strategy: str) -> None:
    assert Job({"jobSpec": {"scheduling": {"strategy": given}}}).strategy == strategy


@pytest.mark.parametrize(
    ("path", "strategy"),
    [
        (("jobSpec", "scheduling"), "?"),
        (("jobSpec", "scheduling", "strategy"), "?"),
        (("jobSpec", "workerPoolSpecs"), "SPOT"),
        (("scheduling",), "SPOT"),
    ],
)
def test_a_strategy_that_could_not_be_read_is_not_known(
    path: tuple[str, ...], strategy: str
) -> None:
    request = {"jobSpec": {"scheduling": {"strategy": "SPOT"}}}
    assert Job(request, unreadable=(("x",), path)).strategy == strategy
