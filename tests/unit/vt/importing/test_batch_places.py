"""Accounts, networks, variables and buckets of a job of Google Batch that is imported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.importing.test_batch_fields import pool_of, read

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
    ],
)  # fmt: skip
def test_the_account_is_its_own_or_one_of_the_stack(
    account: dict[str, Any], email: str | None, remarks: list[str]
) -> None:
    found = read(place={"serviceAccount": account})
    assert (found.spec.get("serviceAccount"), found.remarks) == (email, remarks)


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
        ({"cpuMilli": "8001", "bootDiskMib": "1"}, {}, [MORE.format("cpuMilli 8001")]),
    ],
)  # fmt: skip
def test_a_task_has_a_machine_of_its_own(
    asked: dict[str, str], group: dict[str, str], remarks: list[str]
) -> None:
    task = {"computeResource": asked} if asked else {}
    assert read(task=task, group=group).remarks == remarks
