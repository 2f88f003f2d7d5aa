"""Accounts, networks, variables and buckets of a job of Google Batch that is imported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.importing.test_batch_fields import pool_of, read
from vertex_training_cli.importing.batch_jobs import imported
from vertex_training_cli.importing.batch_messages import BatchMessage

DEFAULT = (
    "it runs as Compute Engine's default account; here as one of the stack, with the rights that "
    "the job is seen to need"
)
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@pytest.mark.parametrize(
    ("account", "email", "remarks"),
    [
        ({"email": "a@b"}, "a@b", []),
        ({"email": "a@b", "scopes": [SCOPE]}, "a@b", []),
        ({"email": "a@b", "scopes": [SCOPE, "x"]}, "a@b",
         ["scopes of its account are left out: roles limit it"]),
        ({"email": ""}, None, [DEFAULT]),
        ({"email": "123-compute@developer.gserviceaccount.com"}, None, [DEFAULT]),
        ({"email": "a-compute@developer.gserviceaccount.com"},
         "a-compute@developer.gserviceaccount.com", []),
    ],
)  # fmt: skip
def test_the_account_is_its_own_or_one_of_the_stack(
    account: dict[str, Any], email: str | None, remarks: list[str]
) -> None:
    found = read(place={"serviceAccount": account})
    assert (found.spec.get("serviceAccount"), found.remarks) == (email, remarks)


@pytest.mark.parametrize(
    ("allowed", "policy", "region", "remarks"),
    [
        ([], {}, "", []),
        (["regions/us-central1"], {}, "us-central1", []),
        (["regions/us-central1", "zones/us-central1-a"], {}, "us-central1", []),
        (["zones/us-central1-a", "zones/us-central1-b"], {}, "us-central1",
         ["it may run in us-central1-a, us-central1-b alone; here in any zone of the region"]),
        (["zones/us-central1-a"], {"reservation": "r"}, "us-central1", []),
    ],
)  # fmt: skip
def test_where_it_may_run_is_its_region(
    allowed: list[str], policy: dict[str, Any], region: str, remarks: list[str]
) -> None:
    machine = {"machineType": "n2-standard-8", **policy}
    found = read(place={"location": {"allowedLocations": allowed or ["x/y"]}}, policy=machine)
    assert (found.region, found.remarks) == (region, remarks)


OUTSIDE = (
    "it is in {} with external addresses; here in the project's default network, or by "
    "pscInterfaceConfig: ${{network.interface}} in the stack's subnet without them"
)


@pytest.mark.parametrize(
    ("interfaces", "config", "subnet", "remarks"),
    [
        ([], None, "", []),
        ([{"network": "n", "subnetwork": "s", "noExternalIpAddress": True}], "${network.interface}",
         "s", []),
        ([{"network": "n", "noExternalIpAddress": True}], "${network.interface}", "n", []),
        ([{"network": "n", "subnetwork": "s"}], None, "", [OUTSIDE.format("s")]),
        ([{"noExternalIpAddress": False}], None, "", [OUTSIDE.format("a network")]),
        ([{"network": "n"}, {"network": "m"}, {"subnetwork": "t"}], None, "",
         [OUTSIDE.format("n"), "machines have one interface: m, t is left out"]),
    ],
)  # fmt: skip
def test_a_network_is_the_stacks_where_machines_have_no_external_address(
    interfaces: list[dict[str, Any]], config: str | None, subnet: str, remarks: list[str]
) -> None:
    found = read(place={"network": {"networkInterfaces": interfaces}} if interfaces else {})
    assert found.spec.get("pscInterfaceConfig") == config
    assert (found.subnet, found.remarks) == (subnet, remarks)


def test_labels_are_those_of_the_job_and_its_machines_but_not_a_stacks() -> None:
    ours = dict.fromkeys(("vt-stack", "vt-request-digest", "batch-job-id"), "x")
    found = read(labels={"a": "1", "b": "1", **ours}, place={"labels": {"b": "2", "c": "2"}})
    assert found.labels == {"a": "1", "b": "1", "c": "2"}


@pytest.mark.parametrize(
    ("fields", "source", "name", "region"),
    [
        ({}, {}, "default", ""),
        ({"name": "projects/p/locations/r/jobs/My_Job"}, {}, "my-job", "r"),
        ({"name": "My_Job"}, {}, "my-job", ""),
        ({"name": "projects/p/locations/r/jobs/a"}, {"name": "b", "region": "q"}, "b", "q"),
        ({"name": "a", "labels": {"vt-job": "own"}}, {"name": "b"}, "own", ""),
    ],
)
def test_a_job_has_its_label_its_callers_or_its_own_name(
    fields: dict[str, Any], source: dict[str, Any], name: str, region: str
) -> None:
    runnable = {"container": {"imageUri": "i"}}
    groups = {"taskGroups": [{"taskSpec": {"runnables": [runnable]}}]}
    found = imported(BatchMessage({**groups, **fields}, ["first"], **source), "default")
    assert (found.name, found.region, found.remarks[0]) == (name, region, "first")


def test_a_new_submission_has_a_request_id_of_its_own() -> None:
    labels = {"vt-request-id": "abc123", "vt-job": "j"}
    step = {"environment": {"variables": {"OUT": "gs://b/abc123/x"}}}
    found = read(labels=labels, step=step, container={"commands": ["abc123", "--o=abc123/y"]})
    task = pool_of(found)["containerSpec"]
    assert task["args"] == ["${job.requestId}", "--o=${job.requestId}/y"]
    assert task["env"] == [{"name": "OUT", "value": "gs://b/${job.requestId}/x"}]


@pytest.mark.parametrize(
    ("container", "fields", "remarks"),
    [
        ({"entrypoint": "python", "commands": ["t.py", "1"]},
         {"command": ["python"], "args": ["t.py", "1"]}, []),
        ({"entrypoint": "python t.py --a=1"}, {"command": ["python", "t.py", "--a=1"]},
         ["its entrypoint has several words: docker takes the first, as here, and the others are "
          "arguments"]),
        ({"entrypoint": "sh -c 'a b'"}, {"command": ["sh -c 'a b'"]}, []),
        ({"commands": ["$(A)", "$(DATE)", "$$(A)", "$(CLOUD_ML_JOB_ID)", "$(CLUSTER_SPEC)",
                       "$(AIP_MODEL_DIR)"]},
         {"args": ["$(A)", "$(DATE)", "$$$(A)", "$$(CLOUD_ML_JOB_ID)", "$$(CLUSTER_SPEC)",
                   "$$(AIP_MODEL_DIR)"]}, []),
    ],
)  # fmt: skip
def test_words_are_command_and_arguments_as_batch_gives_them(
    container: dict[str, Any], fields: dict[str, Any], remarks: list[str]
) -> None:
    found = read(container=container)
    assert (pool_of(found)["containerSpec"], found.remarks) == (
        {"imageUri": "a/b/c:1", **fields}, remarks
    )  # fmt: skip


def test_a_container_without_an_image_has_a_place_for_one() -> None:
    runnable = {"container": {"commands": ["x"]}}
    groups = {"taskGroups": [{"taskSpec": {"runnables": [runnable]}}]}
    task = pool_of(imported(BatchMessage(groups), "job"))["containerSpec"]
    assert task == {"imageUri": "<YOUR_IMAGE>", "args": ["x"]}


SECRET = "projects/p/secrets/s/versions/latest"
NO_SECRET = (
    "{} is {}, which is no projects/PROJECT/secrets/SECRET/versions/VERSION: write "
    "${{secrets.KEY.value}}, and the secret as KEY in the stack's secrets"
)


@pytest.mark.parametrize(
    ("task", "step", "env", "remarks"),
    [
        ({"variables": {"A": "1", "B": "1"}}, {"variables": {"B": "2"}}, {"A": "1", "B": "2"}, []),
        ({}, {"variables": {"A": "x$(A)", "CLOUD_ML_JOB_ID": "1"}}, {"A": "x$$(A)"}, []),
        ({"secretVariables": {"S": SECRET}}, {}, {"S": f"{SECRET}#value"}, []),
        ({}, {"secretVariables": {"S": SECRET}}, {"S": f"{SECRET}#value"}, []),
        ({"secretVariables": {"S": "projects/p/secrets/s"}}, {}, {"S": "<SECRET_OF_S>"},
         [NO_SECRET.format("S", "the secret projects/p/secrets/s")]),
        ({"secretVariables": {"S": "${SECRET}"}}, {}, {"S": "<SECRET_OF_S>"},
         [NO_SECRET.format("S", "the secret ${SECRET}")]),
        ({"secretVariables": {"S": "hunter2"}}, {}, {"S": "<SECRET_OF_S>"},
         [NO_SECRET.format("S", "a secret")]),
    ],
)  # fmt: skip
def test_variables_are_those_of_the_step_over_those_of_its_task(
    task: dict[str, Any], step: dict[str, Any], env: dict[str, str], remarks: list[str]
) -> None:
    found = read(
        task={"environment": task} if task else {}, step={"environment": step} if step else {}
    )
    given = [{"name": name, "value": value} for name, value in env.items()]
    assert (pool_of(found)["containerSpec"]["env"], found.remarks) == (given, remarks)


def test_environments_of_old_are_variables() -> None:
    found = read(task={"environments": {"A": "1"}, "environment": {"variables": {"B": "2"}}})
    assert pool_of(found)["containerSpec"]["env"] == [
        {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
    ]  # fmt: skip
    assert found.remarks == ["environments is an old name of Batch's: they are variables here"]


FOLDERS = {
    "AIP_MODEL_DIR": "gs://b/x/model/", "AIP_CHECKPOINT_DIR": "gs://b/x/checkpoints/",
    "AIP_TENSORBOARD_LOG_DIR": "gs://b/x/logs/",
}  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "folder", "left"),
    [
        (FOLDERS, "gs://b/x", []),
        (FOLDERS | {"AIP_CHECKPOINT_DIR": "gs://b/y"}, "gs://b/x", ["AIP_CHECKPOINT_DIR"]),
        ({"AIP_MODEL_DIR": "gs://b/x/model"}, "gs://b/x", []),
        ({"AIP_MODEL_DIR": "gs://b/x/other"}, None, ["AIP_MODEL_DIR"]),
        ({"AIP_MODEL_DIR": "/x/model"}, None, ["AIP_MODEL_DIR"]),
        ({"CLUSTER_SPEC": "mine"}, None, ["CLUSTER_SPEC"]),
        ({"CLUSTER_SPEC": '{"cluster":{"workerpool0":["localhost:2222"]},"environment":"cloud",'
                          '"task":{"type":"workerpool0","index":0}}'}, None, []),
    ],
)  # fmt: skip
def test_variables_that_a_job_gets_anyway_are_its_output_directory(
    variables: dict[str, str], folder: str | None, left: list[str]
) -> None:
    found = read(step={"environment": {"variables": variables}})
    output = found.spec.get("baseOutputDirectory")
    assert output == ({"outputUriPrefix": folder} if folder else None)
    assert [each["name"] for each in pool_of(found)["containerSpec"].get("env", [])] == left


MEMORY = (
    "docker's options `{}` are left out: shared memory is docker's 64 MB: set num_workers=0 where "
    "PyTorch loads data"
)
OTHERS = "docker's options{} are left out: put what they set into the image, env or command"


@pytest.mark.parametrize(
    ("options", "remarks"),
    [
        ("", []),
        ("  ", []),
        ("--shm-size=8g", [MEMORY.format("--shm-size")]),
        ("--ipc host --shm-size 8g --shm-size=9g", [MEMORY.format("--ipc --shm-size")]),
        (
            "--ipc=host -e PASSWORD=hunter2 --network=host",
            [MEMORY.format("--ipc"), OTHERS.format(" `-e --network`")],
        ),
        ("-uroot:hunter2", [OTHERS.format(" `-u`")]),
        ("--gpus=all --runtime=nvidia", [OTHERS.format(" `--gpus --runtime`")]),
        ("hunter2", [OTHERS.format("")]),
        ("--env 'open", [OTHERS.format("")]),
        ("--Upper", [OTHERS.format("")]),
    ],
)
def test_options_of_docker_are_told_by_their_names(options: str, remarks: list[str]) -> None:
    assert read(container={"options": options}).remarks == remarks


@pytest.mark.parametrize("options", ["--gpus=all", "--gpus all", "--runtime nvidia --gpus=all"])
def test_options_that_batch_gives_machines_with_gpus_are_not_told(options: str) -> None:
    policy = {"machineType": "g2-standard-4"}
    instance = {"installGpuDrivers": True}
    assert read(container={"options": options}, policy=policy, instance=instance).remarks == []


def test_options_that_several_machines_have_are_not_told() -> None:
    group = {"taskCount": "2", "taskCountPerNode": "1"}
    for options in ("--network=host", "--net host"):
        assert read(container={"options": options}, group=group).remarks == []


PACKED = (
    "Batch may put several of its tasks on one machine; here each has its own, which costs more: "
    "choose a smaller machine type"
)
MORE = (
    "a task asks for more than its machine has ({}): Batch never starts that; choose a larger "
    "machine type"
)


@pytest.mark.parametrize(
    ("asked", "group", "remarks"),
    [
        ({}, {}, []),
        ({"cpuMilli": "2000"}, {}, []),
        ({"cpuMilli": "8000", "memoryMib": "32768"}, {"taskCount": "2"}, []),
        ({"cpuMilli": "7999", "memoryMib": "32768"}, {"taskCount": "2"}, [PACKED]),
        ({"cpuMilli": "8000"}, {"taskCount": "2"}, [PACKED]),
        ({}, {"taskCount": "2"}, [PACKED]),
        ({}, {"taskCount": "2", "taskCountPerNode": "1"}, []),
        ({"cpuMilli": "8001", "bootDiskMib": "1"}, {}, [MORE.format("cpuMilli 8001")]),
        ({"memoryMib": "32769", "cpuMilli": "1"}, {},
         [MORE.format("memoryMib 32769, cpuMilli 1")]),
        ({"memoryMib": "<M>"}, {}, []),
    ],
)  # fmt: skip
def test_a_task_has_a_machine_of_its_own(
    asked: dict[str, str], group: dict[str, str], remarks: list[str]
) -> None:
    task = {"computeResource": asked} if asked else {}
    assert read(task=task, group=group).remarks == remarks
