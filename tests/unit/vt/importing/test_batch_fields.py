"""Parts of a job of Google Batch, one by one: the job that is imported, and all that is told."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.importing.batch_jobs import imported
from vertex_training_cli.importing.batch_messages import BatchMessage
from vertex_training_cli.importing.imported import ImportedJob

SCHEDULING = {"timeout": "60s", "disableRetries": True}


def read(
    *,
    step: dict[str, Any] | None = None,
    container: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None,
    group: dict[str, Any] | None = None,
    policy: dict[str, Any] | None = None,
    instance: dict[str, Any] | None = None,
    place: dict[str, Any] | None = None,
    **top: Any,
) -> ImportedJob:
    """The job of a message of which all is usual but these parts."""
    runnable = {"container": {"imageUri": "a/b/c:1", **(container or {})}, **(step or {})}
    spec = {"runnables": [runnable], "maxRunDuration": "60s", **(task or {})}
    machine = {"machineType": "n2-standard-8"} if policy is None else policy
    fields = {
        "taskGroups": [{"taskSpec": spec, **(group or {})}],
        "allocationPolicy": {
            "instances": [{"policy": machine, **(instance or {})}],
            "serviceAccount": {"email": "a@p.iam.gserviceaccount.com"},
            **(place or {}),
        },
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
        **top,
    }
    return imported(BatchMessage(fields), "job")


def pool_of(found: ImportedJob) -> dict[str, Any]:
    [pool] = found.spec["workerPoolSpecs"]
    return pool


@pytest.mark.parametrize(
    ("group", "counts", "remarks"),
    [
        ({}, [1], []),
        ({"taskCount": "1", "parallelism": "1"}, [1], []),
        ({"taskCount": "0"}, [1], []),
        ({"taskCount": "2", "taskCountPerNode": "1"}, [1, 1], []),
        ({"taskCount": "<TASKS>", "taskCountPerNode": "1"}, [1, "<TASKS> - 1"],
         ["how many tasks it has is open: <TASKS>. The second pool has all but one"]),
        ({"schedulingPolicy": "IN_ORDER"}, [1],
         ["schedulingPolicy: IN_ORDER is left out: all tasks begin at once"]),
    ],
)  # fmt: skip
def test_tasks_are_machines_that_begin_at_once(
    group: dict[str, Any], counts: list[Any], remarks: list[str]
) -> None:
    found = read(group=group)
    assert [pool["replicaCount"] for pool in found.spec["workerPoolSpecs"]] == counts
    assert found.remarks == remarks


ANY = {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}
T4 = {"type": "nvidia-tesla-t4", "count": "2"}
NO_DRIVERS = "it installs no GPU drivers; here Batch does, as without them there is no GPU"


@pytest.mark.parametrize(
    ("policy", "instance", "machine", "remarks"),
    [
        ({"machineType": "n1-standard-8", "accelerators": [T4]}, {},
         {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2, **ANY}, [NO_DRIVERS]),
        ({"machineType": "n1-standard-8", "accelerators": [
            {"type": "projects/p/zones/z/acceleratorTypes/nvidia-l4"}, T4]},
         {"installGpuDrivers": True},
         {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 1, **ANY},
         ["a machine has GPUs of one kind: those after the first are left out"]),
        ({"machineType": "g2-standard-24"}, {"installGpuDrivers": True},
         {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 2, **ANY}, []),
        ({"machineType": "n1-standard-8", "accelerators": [T4], "provisioningModel": "SPOT"},
         {"installGpuDrivers": True},
         {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}, []),
    ],
)  # fmt: skip
def test_gpus_are_those_of_the_policy_or_of_the_machine(
    policy: dict[str, Any], instance: dict[str, Any], machine: dict[str, Any], remarks: list[str]
) -> None:
    found = read(policy=policy, instance=instance)
    expected = {"machineType": policy["machineType"], **machine}
    assert (pool_of(found)["machineSpec"], found.remarks) == (expected, remarks)


@pytest.mark.parametrize(
    ("task", "policy", "scheduling", "remarks"),
    [
        ({"maxRunDuration": "9s"}, {}, {"timeout": "9s", "disableRetries": True}, []),
        ({"maxRunDuration": ""}, {}, {"disableRetries": True},
         ["it has no maxRunDuration: here each attempt ends after seven days"]),
        ({"lifecyclePolicies": [{}]}, {}, SCHEDULING,
         ["lifecyclePolicies without maxRetryCount have no effect, and are left out"]),
        ({"maxRetryCount": 2, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50004, 50001, 50003, 50002]}}
         ]}, {}, {"timeout": "60s"},
         ["it is tried again 2 times at most; here 3, or never by disableRetries"]),
        ({"maxRetryCount": 6, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001, 50002, 50003, 50004]}}
         ]}, {"provisioningModel": "SPOT"}, {"timeout": "60s", "strategy": "SPOT"}, []),
        ({"maxRetryCount": 3, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [5, "<YOUR_CODE>"]}}
         ]}, {}, {"timeout": "60s"},
         ["it is tried again by the exit codes of its own (RETRY_TASK after 5, <YOUR_CODE>): here "
          "only after 50001 to 50004, which are Google's"]),
    ],
)  # fmt: skip
def test_attempts_and_their_time_are_the_scheduling(
    task: dict[str, Any], policy: dict[str, Any], scheduling: dict[str, Any], remarks: list[str]
) -> None:
    found = read(task=task, policy={"machineType": "n2-standard-8", **policy})
    assert (found.spec["scheduling"], found.remarks) == (scheduling, remarks)


def test_what_is_beside_the_first_machine_and_where_logs_go_is_told() -> None:
    found = read(
        place={"instances": [{"policy": {"machineType": "n2-standard-8"}}] * 2},
        logsPolicy={"destination": "PATH"},
    )
    assert found.remarks == [
        "Batch takes machines of the first of its instances alone: others are left out",
        "its logs go to Cloud Logging here, whatever logsPolicy says",
    ]
