"""Jobs of Google Batch as messages: what is read of JSON and flags, and which field is left out."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.importing import batch_messages
from vertex_training_cli.importing.batch_messages import BatchMessage
from vertex_training_cli.importing.imported import Scalar

MACHINE = "allocationPolicy.instances"
STEP = "taskGroups.taskSpec.runnables"
#: A field -> what is said of it.
TOLD = {
    "priority": "jobs of a stack start when it is updated",
    "notifications": "messages of the job in the stack file are these (docs/batch.md)",
    "logsPolicy.logsPath": "logs go to Cloud Logging: `vt jobs logs`",
    "logsPolicy.cloudLoggingOption": "logs have the resource of Batch's jobs",
    "taskGroups.permissiveSsh":
        "machines get no keys for one another: launch by torch.distributed",
    "taskGroups.runAsNonRoot": "write USER into the image",
    f"{STEP}.container.blockExternalNetwork":
        "network mode psc without nat keeps machines inside",
    f"{STEP}.container.username":
        "the job's account pulls the image: give it the right to read it",
    f"{STEP}.container.password":
        "the job's account pulls the image: give it the right to read it",
    f"{STEP}.container.enableImageStreaming": "the image is pulled before the job begins",
    f"{STEP}.displayName": "a job has one step, and the name of the job",
    f"{STEP}.labels": "labels are the job's",
    f"{STEP}.ignoreExitStatus": "a task fails as its command does: end it with `|| true`",
    f"{STEP}.background": "a job has one step: start what runs beside it in its command",
    f"{STEP}.alwaysRun": "a job has one step: clean up in its command, by `trap`",
    f"{STEP}.environment.encryptedVariables": "put the value into a secret of the stack",
    "taskGroups.taskSpec.environment.encryptedVariables":
        "put the value into a secret of the stack",
    "allocationPolicy.network.networkInterfaces.nicType":
        "machines have the network card of their type",
    "allocationPolicy.placement": "Batch places the machines where it finds them",
    "allocationPolicy.tags": "firewall rules of the stack are for its subnet, not for tags",
    f"{MACHINE}.installOpsAgent": "install it in the image, if the job needs its metrics",
    f"{MACHINE}.blockProjectSshKeys":
        "set block-project-ssh-keys in the project's metadata",
    f"{MACHINE}.policy.minCpuPlatform": "choose a machine type of that platform",
    f"{MACHINE}.policy.disks": "a job has its boot disk: make it larger by diskSpec",
    f"{MACHINE}.policy.accelerators.driverVersion": "Batch chooses the driver",
    f"{MACHINE}.policy.bootDisk.image":
        "Batch chooses the system; the container has its own",
    f"{MACHINE}.policy.bootDisk.snapshot": "put its files into the image or a bucket",
    f"{MACHINE}.policy.bootDisk.diskInterface": "Batch chooses it",
}  # fmt: skip
CARRIED = [
    "name", "uid", "status", "createTime", "updateTime", "taskGroups.name", "labels",
    "logsPolicy.destination", "taskGroups.taskCount", "taskGroups.parallelism",
    "taskGroups.taskCountPerNode", "taskGroups.requireHostsFile", "taskGroups.schedulingPolicy",
    f"{STEP}.container.imageUri", f"{STEP}.container.commands", f"{STEP}.container.entrypoint",
    f"{STEP}.container.volumes", f"{STEP}.container.options", f"{STEP}.script.text",
    f"{STEP}.script.path", f"{STEP}.barrier.name", f"{STEP}.environment.variables",
    f"{STEP}.environment.secretVariables", f"{STEP}.timeout",
    "taskGroups.taskSpec.environment.variables", "taskGroups.taskSpec.environment.secretVariables",
    "taskGroups.taskSpec.environments", "taskGroups.taskSpec.computeResource.cpuMilli",
    "taskGroups.taskSpec.maxRunDuration", "taskGroups.taskSpec.maxRetryCount",
    "taskGroups.taskSpec.lifecyclePolicies.action", "taskGroups.taskSpec.volumes.mountPath",
    "allocationPolicy.location.allowedLocations", "allocationPolicy.serviceAccount.email",
    "allocationPolicy.labels", "allocationPolicy.network.networkInterfaces.network",
    "allocationPolicy.network.networkInterfaces.subnetwork",
    "allocationPolicy.network.networkInterfaces.noExternalIpAddress",
    f"{MACHINE}.instanceTemplate", f"{MACHINE}.installGpuDrivers", f"{MACHINE}.policy.machineType",
    f"{MACHINE}.policy.provisioningModel", f"{MACHINE}.policy.accelerators.type",
    f"{MACHINE}.policy.accelerators.count", f"{MACHINE}.policy.accelerators.installGpuDrivers",
    f"{MACHINE}.policy.bootDisk.type", f"{MACHINE}.policy.bootDisk.sizeGb",
    f"{MACHINE}.policy.reservation",
]  # fmt: skip
LISTS = ("taskGroups", "runnables", "networkInterfaces", "instances", "accelerators", "volumes")


def message(path: str, value: Any = 1) -> dict[str, Any]:
    """A message with one field; what is a list in the API is one."""
    for part in reversed(path.split(".")):
        value = {part: [value] if part in LISTS and isinstance(value, dict) else value}
    return value


@pytest.mark.parametrize(("path", "why"), TOLD.items())
def test_a_field_that_no_job_file_has_is_told_with_what_to_do(path: str, why: str) -> None:
    told = f"{path} is left out, as a job file has nothing like it: {why}"
    assert batch_messages.left_out(message(path)) == ([told], [])
    assert batch_messages.left_out(message(f"{path}.part")) == ([told], [])


@pytest.mark.parametrize("path", CARRIED)
def test_a_field_that_is_carried_over_is_not_told(path: str) -> None:
    assert batch_messages.left_out(message(path)) == ([], [])


@pytest.mark.parametrize("word", ["", "~", "null", "Null", "NULL"])
def test_nothing_is_no_value(word: str) -> None:
    found = batch_messages.of_document(f"priority: {word}\ntaskGroups: []\n".encode(), "f")
    assert found == BatchMessage({})


def test_environments_are_somebodys_own_names() -> None:
    given = message("taskGroups.taskSpec.environments", {"A": {"b": 1}})
    assert batch_messages.left_out(given) == ([], [])
    assert batch_messages.left_out({}) == ([], [])


def test_other_fields_are_told_once_and_variables_of_a_task_are_refused() -> None:
    given = {
        "taskGroups": [
            {"taskEnvironments": [{"variables": {"A": "1"}}, {"variables": {"A": "2"}}],
             "taskSpec": {"runnables": [{"new": 1}, {"new": 2}, {"container": {}}]}}
        ],
        "labels": {"a": "b"}, "labelsOf": 1, "priority": 0, "empty": [], "list": [1, 2],
    }  # fmt: skip
    assert batch_messages.left_out(given) == (
        [
            f"{STEP}.new is left out, as a job file has nothing like it",
            f"{STEP}.container is left out, as a job file has nothing like it",
            "labelsOf is left out, as a job file has nothing like it",
            "priority is left out, as a job file has nothing like it: jobs of a stack start when "
            "it is updated",
            "empty is left out, as a job file has nothing like it",
            "list is left out, as a job file has nothing like it",
        ],
        [
            "tasks of a job have the same variables: let the code choose by BATCH_TASK_INDEX, or "
            "write a job each"
        ],
    )


@pytest.mark.parametrize(
    ("given", "fields", "remarks"),
    [
        ({}, {}, []),
        ({"task_groups": [{"task_count": 2, "taskCountPerNode": "3"}]},
         {"taskGroups": [{"taskCount": "2", "taskCountPerNode": "3"}]}, []),
        ({"name": "n", "uid": 3, "create_time": "x", "updateTime": [], "status": "s"},
         {"name": "n"}, []),
        ({"taskGroups": [{"taskCount": Scalar("~"), "parallelism": 0}]},
         {"taskGroups": [{}]}, []),
        ({"tomorrow": 1, "taskGroups": [{"a_b": {"c": 1}}]}, {"taskGroups": [{}]},
         ["tomorrow is no field of Batch's, which refuses it",
          "taskGroups[0].a_b is no field of Batch's, which refuses it"]),
        ({"allocationPolicy": {"instanceFlexibilityPolicy": {}}}, {"allocationPolicy": {}},
         ["allocationPolicy.instanceFlexibilityPolicy is left out: Google's client does not send "
          "it: choose one machine type"]),
        ({"labels": {"b": 1, "a": True}}, {"labels": {"b": "1", "a": "True"}}, []),
        ({"allocationPolicy": {"location": {"allowedLocations": "zones/a"}, "tags": ["x", "y"]}},
         {"allocationPolicy": {"location": {"allowedLocations": ["zones/a"]}, "tags": ["x", "y"]}},
         []),
        ({"logsPolicy": {"destination": "CLOUD_LOGGING"}},
         {"logsPolicy": {"destination": "CLOUD_LOGGING"}}, []),
        ({"taskGroups": [{"taskSpec": {"maxRunDuration": "60s"}, "requireHostsFile": "True",
                          "permissiveSsh": "false"}]},
         {"taskGroups": [{"taskSpec": {"maxRunDuration": "60s"}, "requireHostsFile": True}]}, []),
    ],
)  # fmt: skip
def test_a_job_is_read_by_googles_own_class(
    given: dict[str, Any], fields: dict[str, Any], remarks: list[str]
) -> None:
    assert batch_messages.parsed(given) == BatchMessage(fields, remarks)


def test_fields_stay_in_the_order_of_the_file() -> None:
    given = {"priority": "3", "labels": {"z": "1", "a": "2"}, "allocationPolicy": {}, "name": "n"}
    found = batch_messages.parsed(given).fields
    assert list(found) == ["priority", "labels", "allocationPolicy", "name"]
    assert list(found["labels"]) == ["z", "a"]
    group = {"taskCount": "2", "taskSpec": {"maxRunDuration": "1s", "runnables": []}, "name": "n"}
    [read] = batch_messages.parsed({"taskGroups": [group]}).fields["taskGroups"]
    assert (list(read), list(read["taskSpec"])) == (
        ["taskCount", "taskSpec", "name"], ["maxRunDuration"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("<TASKS>", "<YOUR_TASKS>"), ("<your tasks>", "<YOUR_TASKS>"), ("$TASKS", "<YOUR_TASKS>"),
        ("${task_count}", "<TASK_COUNT>"), ("{{ tasks }}", "<YOUR_TASKS>"),
        ("{tasks}", "<YOUR_TASKS>"), ("YOUR_TASKS", "<YOUR_TASKS>"), ("TASK_COUNT", "<TASK_COUNT>"),
    ],
)  # fmt: skip
def test_a_number_that_is_to_be_filled_in_stays_open(value: str, found: str) -> None:
    given = {"taskGroups": [{"parallelism": 1}, {"taskCount": value}]}
    assert batch_messages.parsed(given).fields == {
        "taskGroups": [{"parallelism": "1"}, {"taskCount": found}]
    }


@pytest.mark.parametrize(
    ("codes", "found"),
    [(["$CODE"], ["<YOUR_CODE>"]), (["<A>", "5", "<B>", 7], [5, 7, "<YOUR_A>", "<YOUR_B>"])],
)
def test_a_number_of_a_list_that_is_to_be_filled_in_stays_open(
    codes: list[Any], found: list[Any]
) -> None:
    def message(codes: list[Any]) -> dict[str, Any]:
        policies = [{}, {"actionCondition": {"exitCodes": codes}}]
        return {"taskGroups": [{"taskSpec": {"lifecyclePolicies": policies}}]}

    assert batch_messages.parsed(message(codes)) == BatchMessage(message(found))


@pytest.mark.parametrize("value", ["<MODEL>", "$MODEL", "YOUR_MODEL"])
def test_a_word_that_is_to_be_filled_in_stays_open(value: str) -> None:
    machine = {"policy": {"provisioningModel": value, "machineType": value}}
    given = {"allocationPolicy": {"instances": [machine]}}
    [found] = batch_messages.parsed(given).fields["allocationPolicy"]["instances"]
    assert found == {"policy": {"provisioningModel": "<YOUR_MODEL>", "machineType": value}}


@pytest.mark.parametrize(
    "given",
    [
        {"taskGroups": [{"taskCount": "many"}]},
        {"taskGroups": [{"requireHostsFile": "TASKS"}]},
        {"allocationPolicy": {"instances": [{"policy": {"provisioningModel": "FASTER"}}]}},
        {"taskGroups": 3},
        {"labels": ["a"]},
        {"priority": {"a": 1}},
    ],
)
def test_what_is_no_job_of_batch_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(CommandError) as told:
        batch_messages.parsed(given)
    assert told.value.message.startswith("this is no job of Batch: Failed to parse ")
    assert told.value.message.count("Failed to parse") == 1
    assert "\n" not in told.value.message
    assert not told.value.message.endswith("..")


FILE = b"taskGroups:\n- taskCount: 2\n  taskSpec: {runnables: [{barrier: {name: b}}]}\nname: f\n"
IN_FILE = {"taskCount": "2", "taskSpec": {"runnables": [{"barrier": {"name": "b"}}]}}


def files(name: str) -> bytes | None:
    return {"job.yaml": FILE, "lines": b"a b\nc\n", "bad.yaml": b"taskGroups: ["}.get(name)


def submitted(**flags: str) -> BatchMessage:
    given = [(name.replace("_", "-"), value) for name, value in flags.items()]
    return batch_messages.of_command(given, [], files)


def steps(*runnables: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"taskGroups": [{"taskSpec": {"runnables": list(runnables)}}], **more}


@pytest.mark.parametrize(
    ("flags", "fields", "remarks"),
    [
        ({}, {"taskGroups": [{}]}, []),
        ({"config": "job.yaml"}, {"taskGroups": [IN_FILE]}, []),
        ({"script_text": "echo"}, steps({"script": {"text": "echo"}}), []),
        ({"script_file_path": "run.sh"}, steps({"script": {"text": "run.sh"}}), []),
        ({"container_image_uri": "i"}, steps({"container": {"imageUri": "i"}}), []),
        ({"container_entrypoint": "e"}, steps({"container": {"entrypoint": "e"}}), []),
        ({"container_image_uri": "i", "container_commands_file": "lines"},
         steps({"container": {"imageUri": "i", "commands": ["a b", "c"]}}), []),
        ({"container_commands_file": "none"}, steps({"container": {}}),
         ["gcloud reads none, which is not beside the source: its lines are args"]),
        ({"script_text": "echo", "container_image_uri": "i"},
         steps({"container": {"imageUri": "i"}}), []),
        ({"config": "job.yaml", "script_text": "echo"},
         {"taskGroups": [{"taskCount": "2", "taskSpec": {"runnables": [
             {"script": {"text": "echo"}}, {"barrier": {"name": "b"}}]}}]}, []),
        ({"priority": "3"}, {"taskGroups": [{}], "priority": "3"}, []),
        ({"machine_type": "e2-Small", "provisioning_model": "spot"},
         {"taskGroups": [{}], "allocationPolicy": {"instances": [
             {"policy": {"machineType": "e2-Small", "provisioningModel": "SPOT"}}]}}, []),
        ({"network": "n", "subnetwork": "s"},
         {"taskGroups": [{}], "allocationPolicy": {"network": {"networkInterfaces": [
             {"network": "n", "subnetwork": "s"}]}}}, []),
        ({"network": "n", "subnetwork": "s", "no_external_ip_address": "true"},
         {"taskGroups": [{}], "allocationPolicy": {"network": {"networkInterfaces": [
             {"network": "n", "subnetwork": "s", "noExternalIpAddress": True}]}}}, []),
        ({"network": "n"}, {"taskGroups": [{}]}, []),
        ({"subnetwork": "s", "no_external_ip_address": "true"}, {"taskGroups": [{}]}, []),
        ({"tomorrow": "1", "quiet": "true", "format": "json", "async": "true", "verbosity": "x",
          "project": "p"}, {"taskGroups": [{}]}, ["gcloud's --tomorrow is not read"]),
    ],
)  # fmt: skip
def test_flags_of_gcloud_are_a_message(
    flags: dict[str, str], fields: dict[str, Any], remarks: list[str]
) -> None:
    assert submitted(**flags) == BatchMessage(fields, remarks)


@pytest.mark.parametrize(
    ("flags", "words", "name", "region", "remarks"),
    [
        ([("job-prefix", "p")], [], "p", "", []),
        ([("job-prefix", "p")], ["j"], "j", "", []),
        ([("location", "l")], ["j"], "j", "l", []),
        ([], ["projects/p/locations/r/jobs/j"], "j", "r", []),
        ([("location", "l")], ["projects/p/locations/r/jobs/j"], "j", "l", []),
        ([], ["locations/r/jobs/j"], "j", "", []),
        ([("x", "1"), ("x", "2")], ["j", "more", "words"], "j", "",
         ["gcloud's --x is not read", "`more words` is not read"]),
        ([], ["j", "w" * 90], "j", "", [f"`{'w' * 80}` is not read"]),
    ],
)  # fmt: skip
def test_a_job_of_gcloud_has_its_name_and_region_of_the_call(
    flags: list[tuple[str, str]], words: list[str], name: str, region: str, remarks: list[str]
) -> None:
    found = batch_messages.of_command(flags, words, files)
    assert found == BatchMessage({"taskGroups": [{}]}, remarks, name, region)


def test_a_file_that_is_not_there_or_broken_is_refused() -> None:
    with pytest.raises(CommandError) as told:
        submitted(config="none.json")
    assert told.value.message == (
        "gcloud reads none.json with a job of Batch, which is not beside the source: import that "
        "file."
    )
    with pytest.raises(CommandError) as told:
        submitted(config="bad.yaml")
    assert told.value.message.startswith("bad.yaml:")


def test_a_file_is_read_with_its_own_mistakes_told() -> None:
    found = batch_messages.of_document(b"name: a\nname: b\nlabels: {x: ~, y: null, z: 1e3}\n", "f")
    assert found.fields == {"name": "a", "labels": {"x": "~", "y": "null", "z": "1e3"}}
    [remark] = found.remarks
    assert remark.startswith("f:2:")
