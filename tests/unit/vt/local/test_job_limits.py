"""The job service of the local cloud refuses what the catalogue and the rules of images refuse."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest

from localgcp.vertex.checks import LIMITS
from vertex_training.customjob import rules
from vertex_training_cli.local.job_limits import REFUSED, refusals

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}


def job(image: str = "python:3.11", region: str = "us-central1", **pool: Any) -> list[str]:
    """The refusals of a CustomJob of one pool: ``FIELD: MESSAGE``."""
    machine = {"machineType": "n1-standard-4", **pool.pop("machine", {})}
    task = {"containerSpec": {"imageUri": image}}
    # Sizes of 64 bits are text in JSON (https://protobuf.dev/programming-guides/json/).
    whole = {"replicaCount": "1", "machineSpec": machine, **task, **pool}
    sent = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{}, whole]}}
    return [f"{field}: {message}" for field, message in refusals(sent, region)]


MACHINE = "job_spec.worker_pool_specs[1].machine_spec"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            job(machine={"machineType": "n1-standrd-4"}),
            f'{MACHINE}.machine_type: Machine type "n1-standrd-4" is not supported. '
            "(did you mean 'n1-standard-4'?)",
        ),
        (
            job(machine=T4 | {"machineType": "e2-standard-4"}),
            f'{MACHINE}.accelerator_type: Accelerator "NVIDIA_TESLA_T4" is not supported for '
            'machine type "e2-standard-4".',
        ),
        (
            job(machine=T4 | {"acceleratorCount": 3}),
            f"{MACHINE}.accelerator_count: n1-standard-4 supports NVIDIA_TESLA_T4 with count 1, 2,",
        ),
        (job(machine={"machineType": "g2-standard-4"}), f"{MACHINE}.accelerator_type: "),
        (job(region="europe-west9", machine=T4), f"{MACHINE}.accelerator_type: europe-west9 does"),
        (
            job(diskSpec={"bootDiskType": "pd-extreme"}),
            "job_spec.worker_pool_specs[1].disk_spec.boot_disk_type: training jobs do not support "
            "this boot disk type: pd-extreme.",
        ),
        (
            job(f"{PREBUILT}/pytorch-cpu.2-4.py310:latest"),
            "job_spec.worker_pool_specs[1].container_spec.image_uri: this prebuilt image "
            "does not exist: pytorch-cpu.2-4.py310. (write pytorch-xla.2-4.py310)",
        ),
        (job("https://gcr.io/a/b:1"), "job_spec.worker_pool_specs[1].container_spec.image_uri: "),
    ],
)
def test_a_machine_or_an_image_that_does_not_exist_is_refused_at_its_field(
    found: list[str], expected: str
) -> None:
    assert found[0].startswith(expected)


def test_what_vt_submitted_was_checked_with_what_its_file_sets_aside() -> None:
    pool = {"machineSpec": {"machineType": "new-1"}, "containerSpec": {"imageUri": "x"}}
    spec = {"jobSpec": {"workerPoolSpecs": [pool]}}
    assert list(refusals(spec, "us-central1"))
    for label in ("vt-request-id", "vt-tuning-request-id"):
        assert list(refusals({**spec, "labels": {label: "1"}}, "us-central1")) == []


def test_the_rules_that_are_asked_are_rules_and_the_server_finds_them() -> None:
    assert {rule.id for rule in rules.RULES} >= REFUSED
    [found] = importlib.metadata.entry_points(group=LIMITS)
    assert found.load() is refusals
