"""What Batch refuses of a job, field by field and in which words."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from localgcp.batch import checks
from localgcp.errors import ApiError
from localgcp.inventory.store import SERVICE, Store
from tests.unit.localcloud.conftest import wrong_fields

PROJECT = "local-training"
REGION = "us-central1"
GROUP = "job.task_groups[0]"
TASK = f"{GROUP}.task_spec"
FIRST = f"{TASK}.runnables[0]"
MACHINE = "job.allocation_policy.instances[0].policy"
RIGHT: dict[str, Any] = {
    "taskGroups": [{"taskSpec": {"runnables": [{"script": {"text": "true"}}]}}],
}


def job(path: str = "", value: Any = None) -> dict[str, Any]:
    """A job that is right but for one value; ``group``, ``task``, ``first``: where it is."""
    made = copy.deepcopy(RIGHT)
    group = made["taskGroups"][0]
    places = {
        "group": group, "task": group["taskSpec"], "first": group["taskSpec"]["runnables"][0],
        "policy": made.setdefault("allocationPolicy", {}),
    }  # fmt: skip
    if path:
        place, _, key = path.rpartition(".")
        places.get(place, made)[key] = value
    return made


def refused(given: dict[str, Any]) -> list[tuple[str, str]]:
    """Fields and texts of all that is wrong with a job."""
    try:
        checks.check_job(given, REGION)
    except ApiError as error:
        lists = error.code.name == "INVALID_ARGUMENT"
        return wrong_fields(error.message) if lists else [(error.code.name, "")]
    return []


def runnables(*each: dict[str, Any]) -> dict[str, Any]:
    return job("task.runnables", list(each))


def volume(path: str, remote: str = "b-1") -> dict[str, Any]:
    return job("task.volumes", [{"mountPath": path, "gcs": {"remotePath": remote}}])


def machine(**policy: Any) -> dict[str, Any]:
    return job("policy.instances", [{"policy": policy}])


def location(*allowed: str) -> dict[str, Any]:
    return job("policy.location", {"allowedLocations": list(allowed)})


SCRIPT = {"script": {"text": "true"}}


@pytest.mark.parametrize(
    "given",
    [
        job("group.taskEnvironments", [{}, {"variables": {"A_1": "x"}}]),
        job(
            "task.lifecyclePolicies",
            [{"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}],
        ),
        job("task.environment", {"secretVariables": {"A": "projects/1/secrets/s/versions/latest"}}),
        runnables({"container": {"imageUri": "python:3.11"}}),
        runnables({"barrier": {}}, SCRIPT),
        volume("/mnt/a", "b-1/folder"),
        location("regions/us-central1", "zones/us-central1-f"),
        machine(accelerators=[{"type": "nvidia-l4", "count": "1"}]),
        job("policy.tags", ["a", "a-1", "a" * 63]),
        job("labels", {"team": "a", "googly": "x"}),
    ],
)  # fmt: skip
def test_what_batch_takes_is_taken(given: dict[str, Any]) -> None:
    assert refused(given) == []


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        (job("priority", 100), "job.priority", "The priority must be in [0, 100)."),
        (job("priority", -1), "job.priority", "The priority must be in [0, 100)."),
        (job("labels", {"goog-x": "y"}), "job.labels",
         "Label goog-x: the prefixes goog- and google- are reserved."),
        (job("policy.labels", {"google-x": "y"}), "job.allocation_policy.labels",
         "Label google-x: the prefixes goog- and google- are reserved."),
        (job("policy.labels", {"Team": "y"}), "job.allocation_policy.labels",
         "Label Team=y is not valid: lowercase letters, digits, _ and -."),
        ({}, "job.task_groups", "Exactly one task group is supported, got 0."),
        *((job("policy.tags", ["right", tag]), "job.allocation_policy.tags",
           f"{tag[:80]!r} must be 1 to 63 characters that comply with RFC 1035.")
          for tag in ("", "A", "1a", "a-", "a_b", "a\n", "a" * 64, "a" * 81)),
        (job("policy.instances", [{}, {}]), "job.allocation_policy.instances",
         "Only one is supported."),
        (job("logsPolicy", {"destination": "PATH"}), "job.logs_policy.logs_path",
         "Required where the destination is PATH."),
        (job("notifications", [{"pubsubTopic": "jobs"}]), "job.notifications[0].pubsub_topic",
         "'jobs' must be projects/PROJECT/topics/TOPIC."),
        (job("group.taskCount", "100001"), f"{GROUP}.task_count",
         "Must be between 1 and 100000, got 100001."),
        (job("group.taskCount", "-1"), f"{GROUP}.task_count",
         "Must be between 1 and 100000, got -1."),
        (job("group.parallelism", "5001"), f"{GROUP}.parallelism",
         "Must be at most 5000, got 5001."),
        (job("group.parallelism", "-1"), f"{GROUP}.parallelism", "Must be at most 5000, got -1."),
        (job("group.taskCountPerNode", "-1"), f"{GROUP}.task_count_per_node",
         "Must not be negative."),
        (job("group.taskEnvironments", [{}, {"variables": {"1": "x"}}]),
         f"{GROUP}.task_environments[1].variables", "'1' is no variable that a program can have."),
        (runnables(), f"{TASK}.runnables", "At least one runnable is required."),
        (job("task.maxRetryCount", 11), f"{TASK}.max_retry_count", "Must be in [0, 10], got 11."),
        (job("task.maxRetryCount", -1), f"{TASK}.max_retry_count", "Must be in [0, 10], got -1."),
        (job("task.computeResource", {"cpuMilli": "0"}), f"{TASK}.compute_resource.cpu_milli",
         "Must be positive."),
        (job("task.computeResource", {"memoryMib": "0"}), f"{TASK}.compute_resource.memory_mib",
         "Must be positive."),
        (job("task.maxRunDuration", "0s"), f"{TASK}.max_run_duration", "Must be positive."),
        (job("task.lifecyclePolicies", [{"action": "ACTION_UNSPECIFIED",
                                         "actionCondition": {"exitCodes": [1]}}]),
         f"{TASK}.lifecycle_policies[0].action", "Required field is not set."),
        (job("task.lifecyclePolicies", [{"action": "FAIL_TASK",
                                         "actionCondition": {"exitCodes": [1]}}] * 2),
         f"{TASK}.lifecycle_policies", "Only one lifecycle policy is supported."),
        (job("task.lifecyclePolicies", [{"action": "FAIL_TASK"}]),
         f"{TASK}.lifecycle_policies[0].action_condition.exit_codes",
         "Required field is not set."),
        (job("task.environment", {"variables": {"A": "\0"}}), f"{TASK}.environment.variables",
         "'A' is no variable that a program can have."),
        (job("task.environment", {"secretVariables": {"A": "projects/p/secrets/s/versions/0"}}),
         f"{TASK}.environment.secret_variables",
         "A: projects/P/secrets/S/versions/V expected, got 'projects/p/secrets/s/versions/0'."),
        (job("task.environment", {"secretVariables": {"A-B": "projects/p/secrets/s/versions/1"}}),
         f"{TASK}.environment.secret_variables",
         "A-B: projects/P/secrets/S/versions/V expected, got 'projects/p/secrets/s/versions/1'."),
        (runnables({"container": {}}), f"{FIRST}.container.image_uri",
         "Required field is not set."),
        (runnables({"script": {}}), f"{FIRST}.script", "One of text and path is required."),
        (runnables(SCRIPT, {}), f"{TASK}.runnables[1]",
         "One of container, script and barrier is required."),
        (runnables({"barrier": {}, "background": True}), FIRST,
         "A barrier runs neither in the background nor always."),
        (runnables({"barrier": {}, "alwaysRun": True}), FIRST,
         "A barrier runs neither in the background nor always."),
        (runnables({**SCRIPT, "background": True, "ignoreExitStatus": True}), FIRST,
         "A background runnable has no exit status to ignore."),
        (runnables({**SCRIPT, "timeout": "0s"}), f"{FIRST}.timeout", "Must be positive."),
        (runnables({"script": {"text": "a\0b"}}), FIRST,
         "A NUL character cannot be passed to a program."),
        (runnables({"container": {"imageUri": "i", "commands": ["a", "\0"]}}), FIRST,
         "A NUL character cannot be passed to a program."),
        (runnables({**SCRIPT, "labels": {"google-a": "b"}}), f"{FIRST}.labels",
         "Label google-a: the prefixes goog- and google- are reserved."),
        (runnables({**SCRIPT, "environment": {"variables": {"a b": "c"}}}),
         f"{FIRST}.environment.variables", "'a b' is no variable that a program can have."),
        (volume("mnt"), f"{TASK}.volumes[0].mount_path", "An absolute path expected, got 'mnt'."),
        (volume("/"), f"{TASK}.volumes[0].mount_path", "An absolute path expected, got '/'."),
        (volume("/a/.."), f"{TASK}.volumes[0].mount_path",
         "An absolute path expected, got '/a/..'."),
        (volume("/a\0"), f"{TASK}.volumes[0].mount_path",
         "An absolute path expected, got '/a\\x00'."),
        (volume("/a", "gs://b"), f"{TASK}.volumes[0].gcs.remote_path",
         "BUCKET or BUCKET/FOLDER expected, got 'gs://b'."),
        (volume("/a", "b-1/.."), f"{TASK}.volumes[0].gcs.remote_path",
         "BUCKET or BUCKET/FOLDER expected, got 'b-1/..'."),
        (job("task.volumes", [{"mountPath": "/a"}]), f"{TASK}.volumes[0]",
         "One of gcs, nfs and device_name is required."),
        (location("regions/us-central1", "regions/us-west1"),
         "job.allocation_policy.location.allowed_locations",
         "'regions/us-west1' is not in the job's region us-central1."),
        (location("zones/us-central1"), "job.allocation_policy.location.allowed_locations",
         "'zones/us-central1' is not in the job's region us-central1."),
        (machine(bootDisk={"snapshot": "s"}), f"{MACHINE}.boot_disk.snapshot",
         "Is not supported for boot disks."),
        (machine(accelerators=[{"count": "1"}]), f"{MACHINE}.accelerators",
         "Both type and count are required."),
        (machine(accelerators=[{"type": "nvidia-l4"}]), f"{MACHINE}.accelerators",
         "Both type and count are required."),
        *((machine(provisioningModel=model, reservation="r"), f"{MACHINE}.reservation",
           f"Machines of {model} use no reservation.")
          for model in ("SPOT", "PREEMPTIBLE", "FLEX_START")),
        *((machine(provisioningModel="RESERVATION_BOUND", reservation=name),
           f"{MACHINE}.reservation", "RESERVATION_BOUND needs the reservation.")
          for name in ("", "NO_RESERVATION")),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_alone_with_its_field(
    given: dict[str, Any], field: str, said: str
) -> None:
    assert refused(given) == [(field, said)]


def test_tasks_that_run_in_order_run_one_at_a_time() -> None:
    given = job("group.schedulingPolicy", "IN_ORDER")
    given["taskGroups"][0]["parallelism"] = "2"
    assert refused(given) == [(f"{GROUP}.parallelism", "Must be 1 where tasks run IN_ORDER.")]
    given["taskGroups"][0]["parallelism"] = "1"
    assert refused(given) == []


def waiting(count: int, **group: Any) -> dict[str, Any]:
    given = job("group.taskCount", str(count))
    given["taskGroups"][0] |= group
    return given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (waiting(17, requireHostsFile=True),
         "17 tasks that wait for each other cannot run here: 16 run at once. "
         "Rehearse the job with a lower taskCount."),
        (waiting(17, taskSpec={"runnables": [SCRIPT, {"barrier": {}}]}),
         "17 tasks that wait for each other cannot run here: 16 run at once. "
         "Rehearse the job with a lower taskCount."),
        (waiting(1, requireHostsFile=True, taskEnvironments=[{}] * 17),
         "17 tasks that wait for each other cannot run here: 16 run at once. "
         "Rehearse the job with a lower taskCount."),
        (job("task.volumes", [{"mountPath": "/data", "nfs": {"server": "s"}}]),
         "The volume at /data is no bucket: there are no other volumes."),
        *((given, "encryptedVariables cannot be read: nothing is decrypted here. "
           "Use secretVariables.")
          for given in (
              job("task.environment", {"encryptedVariables": {"cipherText": "x"}}),
              job("first.environment", {"encryptedVariables": {"cipherText": "x"}}),
              job("group.taskEnvironments", [{"encryptedVariables": {"cipherText": "x"}}]),
          )),
    ],
)  # fmt: skip
def test_what_this_machine_cannot_run_is_said_when_it_is_submitted(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ApiError) as told:
        checks.check_job(given, REGION)
    assert told.value.code.name == "FAILED_PRECONDITION"
    assert told.value.message == f"{said} (The local cloud.)"


@pytest.mark.parametrize(
    "given",
    [
        waiting(16, requireHostsFile=True),
        waiting(17),
        waiting(100_000),
        waiting(17, requireHostsFile=True, taskEnvironments=[{}] * 16),
    ],
)
def test_tasks_wait_for_each_other_where_all_fit_and_others_may_be_many(
    given: dict[str, Any],
) -> None:
    checks.check_job(given, REGION)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    for api in ("batch", "compute"):
        made.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    return made


READ, WRITE = "batch.jobs.get", "batch.jobs.create"
