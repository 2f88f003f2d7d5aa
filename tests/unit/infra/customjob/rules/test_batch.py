"""What is told of a job on Batch: place, words, value and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.rules.context import Context
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.customjob.rules.stack.batch import batch_support

POOLS = ("jobSpec", "workerPoolSpecs")
MACHINE = {"machineType": "n1-standard-4"}
CONTAINER = {"imageUri": "us-docker.pkg.dev/acme/train/x:1"}
EQUAL = "Batch runs equal machines, and this is not as in the first pool"
NO_EVALUATORS = "Batch runs equal machines: no parameter servers and no evaluators"
IN_TWO_POOLS = (
    "torch.distributed or workers of one kind, in the first two pools; backend: vertex has it"
)


def on_batch(*pools: dict[str, Any], backend: str = "batch", **spec: Any) -> Job:
    """A job of these pools and of further fields."""
    found = {"serviceAccount": "a@p.iam.gserviceaccount.com", "workerPoolSpecs": list(pools)}
    return Job({"jobSpec": found | spec}, Context(backend=backend))


def pool(**fields: Any) -> dict[str, Any]:
    return {"machineSpec": MACHINE, "containerSpec": CONTAINER, **fields}


def test_an_account_a_key_and_an_attachment_without_a_subnet_are_told():
    spec = {"pscInterfaceConfig": {"networkAttachment": "theirs"}}
    request = {"jobSpec": spec, "encryptionSpec": {"kmsKeyName": "key"}}
    job = Job(request, Context(backend="batch"))
    assert list(batch_support(job)) == [
        Finding(
            ("jobSpec",),
            "serviceAccount is missing: Batch would run it as Compute Engine's default account",
            "",
            "serviceAccount: ${serviceAccounts.NAME}",
            "serviceAccount",
        ),
        Finding(
            ("encryptionSpec",),
            "Batch encrypts disks with a key only through an instance template",
            "key",
            "leave jobs out of encryption.covers, or backend: vertex has it",
        ),
        Finding(
            ("jobSpec", "pscInterfaceConfig", "networkAttachment"),
            "no subnet of this attachment is known, and machines of Batch are in one themselves",
            "theirs",
            "pscInterfaceConfig: ${network.interface} of a stack with a subnet; "
            "backend: vertex has it",
        ),
    ]


def test_pools_on_batch_are_two_of_equal_machines():
    reducer = {"imageUri": "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:1"}
    other = pool(machineSpec={"machineType": "n1-standard-8"}, diskSpec={"bootDiskSizeGb": 200})
    job = on_batch(pool(), other, pool(containerSpec=reducer), pool())
    assert list(batch_support(job)) == [
        Finding(
            (*POOLS, 1, "machineSpec"),
            EQUAL,
            "",
            "the same machineSpec in both pools; backend: vertex has it",
        ),
        Finding(
            (*POOLS, 1, "diskSpec"),
            EQUAL,
            "",
            "the same diskSpec in both pools; backend: vertex has it",
        ),
        Finding(
            (*POOLS, 2),
            "Batch has no reduction servers",
            reducer["imageUri"],
            "leave the pool out; backend: vertex has it",
        ),
        Finding((*POOLS, 3), NO_EVALUATORS, "pool 3", IN_TWO_POOLS),
    ]


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ((pool(),), []),
        ((pool(), pool(replicaCount=3)), []),
        ((pool(), pool(containerSpec={"imageUri": "y"})), [((*POOLS, 1, "containerSpec"), EQUAL)]),
        # A pool that is left out in front of it: there is nothing to be equal to.
        (({}, pool(machineSpec={"machineType": "n1-standard-8"})), []),
        ((pool(), {}, pool()), [((*POOLS, 2), NO_EVALUATORS)]),
    ],
)
def test_the_second_pool_alone_is_compared_with_the_first(pools, expected):
    assert [(each.path, each.what) for each in batch_support(on_batch(*pools))] == expected


RESERVED = {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["r1", "r2"]}
WHOLE = {
    "machineSpec": {
        "machineType": "ct5lp-hightpu-4t",
        "gpuPartitionSize": "1g.5gb",
        "reservationAffinity": RESERVED,
    },
    "pythonPackageSpec": {
        "env": [
            {"name": "TOKEN", "value": "projects/p/secrets/s/versions/latest#value"},
            {"name": "MASTER", "value": "$(MASTER_ADDR):$(MASTER_PORT)"},
        ],
        "args": ["--rank=$(RANK)", "--token=$(TOKEN)", "--name=$(MASTER)"],
    },
    "lustreMounts": [{"mountPoint": "x"}],
    "nfsMounts": [{"mountPoint": "y"}],
}
LATE = "Batch expands nothing, and this value is known only on the machine"
IN_CODE = "read the variable in the code; backend: vertex has it"
NO_FILES = "file systems are not mounted for a job on Batch"
READ = "read buckets below /gcs; backend: vertex has it"
TASK = (*POOLS, 0, "pythonPackageSpec")


def test_all_that_a_pool_cannot_have_on_batch_is_told_at_once():
    at = (*POOLS, 0, "machineSpec")
    assert list(batch_support(on_batch(WHOLE))) == [
        Finding(
            TASK,
            "Batch installs no packages into prebuilt images",
            "",
            "containerSpec with an image of your own, by images in the stack file; "
            "backend: vertex has it",
        ),
        Finding((*POOLS, 0, "nfsMounts"), NO_FILES, "", READ),
        Finding((*POOLS, 0, "lustreMounts"), NO_FILES, "", READ),
        Finding(
            (*at, "machineType"), "Batch has no TPUs", "ct5lp-hightpu-4t", "backend: vertex has it"
        ),
        Finding(
            (*at, "gpuPartitionSize"),
            "Batch does not divide GPUs",
            "1g.5gb",
            "a machine with a smaller GPU; backend: vertex has it",
        ),
        Finding(
            (*at, "reservationAffinity", "values"),
            "Batch takes machines of one reservation",
            "2",
            "one value; backend: vertex has it",
        ),
        Finding((*TASK, "args", 0), LATE, "$(RANK)", IN_CODE),
        Finding((*TASK, "args", 1), LATE, "$(TOKEN)", IN_CODE),
        Finding((*TASK, "env", 1, "value"), LATE, "$(MASTER_ADDR)", IN_CODE),
    ]


@pytest.mark.parametrize(
    ("strategy", "timeout", "days", "most"),
    [("STANDARD", "1209601s", 14, "1209600s"), ("FLEX_START", "604801s", 7, "604800s")],
)
def test_a_longer_job_is_told_its_most_and_a_way_on(strategy, timeout, days, most):
    path = ("jobSpec", "scheduling", "timeout")
    job = on_batch(scheduling={"strategy": strategy, "timeout": timeout})
    hint = f"at most {most}, and go on from a checkpoint"
    assert list(batch_support(job)) == [
        Finding(path, f"Batch ends a job after {days} days", timeout, hint)
    ]
    assert not list(batch_support(on_batch(scheduling={"strategy": strategy, "timeout": most})))
