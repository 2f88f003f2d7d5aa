"""Parts of a job of Google Batch, one by one: the job that is imported, and all that is told."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing.batch_jobs import imported
from vertex_training_cli.importing.batch_messages import BatchMessage
from vertex_training_cli.importing.imported import ImportedJob

POOL: dict[str, Any] = {
    "replicaCount": 1,
    "machineSpec": {"machineType": "n2-standard-8"},
    "containerSpec": {"imageUri": "a/b/c:1"},
}
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


def refusal(**parts: Any) -> str:
    with pytest.raises(CommandError) as told:
        read(**parts)
    return told.value.message


def test_a_usual_job_is_imported_without_a_word() -> None:
    assert read() == ImportedJob(
        "job",
        {"serviceAccount": "a@p.iam.gserviceaccount.com", "workerPoolSpecs": [POOL],
         "scheduling": SCHEDULING},
        backend="batch",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("group", "counts", "remarks"),
    [
        ({}, [1], []),
        ({"taskCount": "1", "parallelism": "1"}, [1], []),
        ({"taskCount": "0"}, [1], []),
        ({"taskCount": "2", "taskCountPerNode": "1"}, [1, 1], []),
        ({"taskCount": "3", "parallelism": "3", "taskCountPerNode": "1"}, [1, 2], []),
        ({"taskCount": "3", "parallelism": "0", "taskCountPerNode": "1"}, [1, 2], []),
        ({"taskCount": "3", "parallelism": "9", "taskCountPerNode": "1"}, [1, 2], []),
        ({"taskCount": "<TASKS>", "taskCountPerNode": "1"}, [1, "<TASKS> - 1"],
         ["how many tasks it has is open: <TASKS>. The second pool has all but one"]),
        ({"schedulingPolicy": "IN_ORDER"}, [1],
         ["schedulingPolicy: IN_ORDER is left out: all tasks begin at once"]),
        ({"schedulingPolicy": "AS_SOON_AS_POSSIBLE"}, [1], []),
    ],
)  # fmt: skip
def test_tasks_are_machines_that_begin_at_once(
    group: dict[str, Any], counts: list[Any], remarks: list[str]
) -> None:
    found = read(group=group)
    assert [pool["replicaCount"] for pool in found.spec["workerPoolSpecs"]] == counts
    assert found.remarks == remarks


CONTAINER = {"container": {"imageUri": "i"}}


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"group": {"taskCount": "3", "parallelism": "2"}},
         "it runs 3 tasks, 2 at once, and the machines of a job all begin together: write a job "
         "each, or let one machine do the work of several tasks"),
        ({"group": {"taskCount": "3", "parallelism": "<N>"}},
         "it runs 3 tasks, <N> at once, and the machines of a job all begin together: write a job "
         "each, or let one machine do the work of several tasks"),
        ({"group": {"taskCount": "-1"}}, "it has -1 tasks"),
        ({"group": {"taskCountPerNode": "2"}},
         "it runs 2 tasks on one machine, and a job file one: start several processes in the "
         "container"),
        ({"group": {"taskCountPerNode": "<N>"}},
         "it runs <N> tasks on one machine, and a job file one: start several processes in the "
         "container"),
        ({"task": {"runnables": []}},
         "it has no runnables in taskGroups, which are what it runs"),
        ({"taskGroups": []}, "it has no runnables in taskGroups, which are what it runs"),
        ({"task": {"runnables": [{"script": {"text": "ls"}}]}},
         "it runs no container, but on the machine itself: put what it runs into an image, which "
         "`vt new image` makes"),
        ({"task": {"runnables": [CONTAINER, CONTAINER]}},
         "it runs 2 containers one after another, and a job file one: put them into one image, or "
         "write a job each"),
        ({"task": {"runnables": [{"script": {"text": "ls"}}, CONTAINER]}},
         "it runs a script on the machine beside its container: put what that does into image or "
         "command"),
        ({"task": {"runnables": [CONTAINER, {"barrier": {}}]}},
         "its tasks wait at a barrier, which no job file has: let the code wait for its peers, as "
         "torch.distributed does"),
        ({"taskGroups": [{"taskSpec": {"runnables": [CONTAINER]}}, {}]},
         "it has 2 task groups, and Batch takes one"),
        ({"group": {"taskCountPerNode": "2", "taskEnvironments": [{}]}},
         "tasks of a job have the same variables: let the code choose by BATCH_TASK_INDEX, or "
         "write a job each; it runs 2 tasks on one machine, and a job file one: start several "
         "processes in the container"),
    ],
)  # fmt: skip
def test_a_job_that_would_be_another_one_is_refused_with_all_reasons(
    parts: dict[str, Any], why: str
) -> None:
    assert refusal(**parts) == f"this job of Batch is not imported: {why}."


@pytest.mark.parametrize(
    ("model", "strategy", "remarks"),
    [
        ("STANDARD", None, []),
        ("SPOT", "SPOT", []),
        ("FLEX_START", "FLEX_START", []),
        ("PREEMPTIBLE", "SPOT",
         ["PREEMPTIBLE is no longer supported by Batch: it is SPOT here"]),
        ("RESERVATION_BOUND", None,
         ["RESERVATION_BOUND is left out: the job takes the reservation by reservationAffinity, "
          "and starts when it has machines"]),
    ],
)  # fmt: skip
def test_how_machines_are_provisioned_is_the_strategy(
    model: str, strategy: str | None, remarks: list[str]
) -> None:
    found = read(policy={"machineType": "n2-standard-8", "provisioningModel": model})
    assert found.spec["scheduling"] == SCHEDULING | ({"strategy": strategy} if strategy else {})
    assert found.remarks == remarks


ANY = {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}
T4 = {"type": "nvidia-tesla-t4", "count": "2"}
NO_DRIVERS = "it installs no GPU drivers; here Batch does, as without them there is no GPU"


@pytest.mark.parametrize(
    ("policy", "instance", "machine", "remarks"),
    [
        ({"machineType": "n1-standard-8", "accelerators": [T4]}, {"installGpuDrivers": True},
         {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2, **ANY}, []),
        ({"machineType": "n1-standard-8", "accelerators": [T4 | {"installGpuDrivers": True}]}, {},
         {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2, **ANY}, []),
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
        ({"machineType": "n1-standard-8", "accelerators": [T4], "reservation": "NO_RESERVATION"},
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


def reserved(name: str) -> dict[str, Any]:
    return {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }


@pytest.mark.parametrize(
    ("name", "zones", "value"),
    [
        ("r1", ["zones/us-central1-a"],
         "projects/${stack.project}/zones/us-central1-a/reservations/r1"),
        ("projects/p/reservations/r1", ["zones/us-central1-a"],
         "projects/p/zones/us-central1-a/reservations/r1"),
        ("projects", [], "projects/${stack.project}/zones/<YOUR_ZONE>/reservations/projects"),
        ("r1", ["zones/us-central1-a", "zones/us-central1-b"],
         "projects/${stack.project}/zones/<YOUR_ZONE>/reservations/r1"),
    ],
)  # fmt: skip
def test_a_reservation_has_its_project_and_zone(name: str, zones: list[str], value: str) -> None:
    found = read(
        policy={"machineType": "n2-standard-8", "reservation": name},
        place={"location": {"allowedLocations": zones}},
    )
    assert pool_of(found)["machineSpec"]["reservationAffinity"] == reserved(value)
    assert found.remarks == []


@pytest.mark.parametrize(
    ("asked", "policy", "wish"),
    [
        ({}, {}, ""),
        ({"cpuMilli": "2500"}, {}, " for 2.5 vCPUs"),
        ({"cpuMilli": "<CPU>", "memoryMib": "<M>"}, {}, " for <CPU> mCPU, <M> MiB of memory"),
        ({"cpuMilli": "4000", "memoryMib": "8192"}, {"accelerators": [{"installGpuDrivers": True}]},
         " for 4 vCPUs, 8 GiB of memory, 1 GPU"),
        ({"memoryMib": "1000"}, {"accelerators": [T4]},
         " for 0.9766 GiB of memory, 2 nvidia-tesla-t4"),
    ],
)  # fmt: skip
def test_a_machine_that_batch_chooses_is_open(
    asked: dict[str, Any], policy: dict[str, Any], wish: str
) -> None:
    policy = {"provisioningModel": "STANDARD", **policy}
    found = read(policy=policy, task={"computeResource": asked}, instance={"installGpuDrivers": 1})
    assert pool_of(found)["machineSpec"]["machineType"] == "<MACHINE_TYPE>"
    assert found.remarks[0] == f"Batch chooses its machine{wish}: write one that has that"


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
            {"action": "FAIL_TASK", "actionCondition": {"exitCodes": [50001, 50002, 50003, 50004]}},
            {"action": "RETRY_TASK"}]}, {}, {"timeout": "60s"},
         ["it is tried again by the exit codes of its own (FAIL_TASK after 50001, 50002, 50003, "
          "50004, RETRY_TASK after ): here only after 50001 to 50004, which are Google's"]),
        ({"maxRetryCount": 3, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [5, "<YOUR_CODE>"]}}
         ]}, {}, {"timeout": "60s"},
         ["it is tried again by the exit codes of its own (RETRY_TASK after 5, <YOUR_CODE>): here "
          "only after 50001 to 50004, which are Google's"]),
        ({"maxRetryCount": 3}, {}, {"timeout": "60s"},
         ["it is tried again by the exit codes of its own (any): here only after 50001 to 50004, "
          "which are Google's"]),
    ],
)  # fmt: skip
def test_attempts_and_their_time_are_the_scheduling(
    task: dict[str, Any], policy: dict[str, Any], scheduling: dict[str, Any], remarks: list[str]
) -> None:
    found = read(task=task, policy={"machineType": "n2-standard-8", **policy})
    assert (found.spec["scheduling"], found.remarks) == (scheduling, remarks)


def test_tasks_that_are_tried_again_together_restart_together() -> None:
    found = read(task={"maxRetryCount": 3}, group={"taskCount": "2", "taskCountPerNode": "1"})
    assert found.spec["scheduling"] == {"timeout": "60s", "restartJobOnWorkerRestart": True}
    assert found.remarks == []


@pytest.mark.parametrize(
    ("own", "timeout", "remarks"),
    [
        ("60s", "60s", []),
        ("30s", "60s",
         ["the timeout of its step, 30s, is left out: a job has that of its attempts"]),
    ],
)  # fmt: skip
def test_the_time_of_a_step_is_that_of_an_attempt_if_there_is_no_other(
    own: str, timeout: str, remarks: list[str]
) -> None:
    found = read(step={"timeout": own})
    assert (found.spec["scheduling"]["timeout"], found.remarks) == (timeout, remarks)
    alone = read(step={"timeout": own}, task={"maxRunDuration": ""})
    assert (alone.spec["scheduling"]["timeout"], alone.remarks) == (own, [])


@pytest.mark.parametrize(
    ("disk", "extra", "spec"),
    [
        ({}, {}, None),
        ({"type": "pd-ssd"}, {}, {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}),
        ({"sizeGb": "50"}, {}, {"bootDiskSizeGb": 50}),
        ({"sizeGb": "<GB>"}, {}, {"bootDiskSizeGb": "<GB>"}),
        ({}, {"bootDiskMib": "102400"}, None),
        ({}, {"bootDiskMib": "102401"}, {"bootDiskSizeGb": 101}),
        ({"sizeGb": "50"}, {"bootDiskMib": "61440"}, {"bootDiskSizeGb": 60}),
        ({"sizeGb": "50"}, {"bootDiskMib": "<MIB>"}, {"bootDiskSizeGb": 50}),
    ],
)
def test_the_disk_is_as_large_as_batch_makes_it(
    disk: dict[str, Any], extra: dict[str, Any], spec: dict[str, Any] | None
) -> None:
    policy = {"machineType": "n2-standard-8", **({"bootDisk": disk} if disk else {})}
    found = read(policy=policy, task={"computeResource": extra})
    assert (pool_of(found).get("diskSpec"), found.remarks) == (spec, [])


def test_what_is_beside_the_first_machine_and_where_logs_go_is_told() -> None:
    found = read(
        place={"instances": [{"policy": {"machineType": "n2-standard-8"}}] * 2},
        logsPolicy={"destination": "PATH"},
    )
    assert found.remarks == [
        "Batch takes machines of the first of its instances alone: others are left out",
        "its logs go to Cloud Logging here, whatever logsPolicy says",
    ]
