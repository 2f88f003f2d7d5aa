"""Quotas: how much a stack takes of which, and what a limit means for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE, H100, planned
from tests.unit.vt.preflight.documents import PROJECT
from vertex_training.catalog.resource_types import (
    RESERVATION,
)
from vertex_training.stack import from_raw
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight.quotas import (
    ComputeNeed,
    GpuFamily,
    JobNeed,
    compute_needs,
    job_needs,
)


def needs(*resources: DeclaredResource, **sections: Any) -> list[ComputeNeed]:
    return compute_needs(DeclaredStack(planned(**sections), {}, resources))


def reserved(name: str) -> DeclaredResource:
    return DeclaredResource(
        RESERVATION, f"capacity-{name}", {"name": name, "zone": "us-central1-a"}
    )


N1 = {"zone": "us-central1-a", "machineType": "n1-standard-8", "count": 3, "name": "small"}


@pytest.mark.parametrize(
    ("given", "counts", "families"),
    [
        ({**H100, "name": "small"}, {}, (GpuFamily("NVIDIA_H100_MEGA", 5 * 8),)),
        (N1, {"CPUS": 3 * 8}, ()),
        ({**N1, "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
         {"CPUS": 24, "NVIDIA_T4_GPUS": 6, "GPUS_ALL_REGIONS": 6}, ()),
        ({**N1, "machineType": "a2-highgpu-1g"},
         {"A2_CPUS": 3 * 12, "NVIDIA_A100_GPUS": 3, "GPUS_ALL_REGIONS": 3}, ()),
        ({**N1, "machineType": "a2-ultragpu-1g"},
         {"A2_CPUS": 3 * 12, "NVIDIA_A100_80GB_GPUS": 3, "GPUS_ALL_REGIONS": 3}, ()),
        ({**N1, "machineType": "g2-standard-8"},
         {"NVIDIA_L4_GPUS": 3, "GPUS_ALL_REGIONS": 3}, ()),
        ({**N1, "machineType": "n2-standard-8"}, {"N2_CPUS": 24}, ()),
        ({**N1, "machineType": "c2-standard-8"}, {"C2_CPUS": 24}, ()),
        *(({**N1, "acceleratorType": f"NVIDIA_TESLA_{gpu}", "acceleratorCount": 1},
           {"CPUS": 24, f"NVIDIA_{gpu}_GPUS": 3, "GPUS_ALL_REGIONS": 3}, ())
          for gpu in ("P4", "P100", "V100")),
    ],
)  # fmt: skip
def test_a_reservation_takes_cpus_and_gpus_when_it_is_made(
    given: Any, counts: dict[str, int], families: tuple[GpuFamily, ...]
) -> None:
    sections = {"reservations": {"small": given}}
    [found] = needs(reserved("small"), **sections)
    assert found == ComputeNeed(PROJECT, "us-central1", {"RESERVATIONS": 1, **counts}, families)
    assert needs(**sections) == []  # one that is there, or that the stack has made


JOB = """\
serviceAccount: ${serviceAccounts.trainer}
scheduling: {timeout: 3600s}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-8}
    containerSpec: {imageUri: "${images.x}"}
  - machineSpec: {machineType: n1-standard-8}
    replicaCount: 2
    containerSpec: {imageUri: "${images.x}"}
"""
T4 = "acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 1"
RESERVED_T4 = (
    "reservationAffinity: {reservationAffinityType: SPECIFIC_RESERVATION, key: "
    "compute.googleapis.com/reservation-name, values: "
    "[projects/acme-ml/zones/us-central1-a/reservations/t4]}"
)


def test_a_job_takes_what_the_largest_of_its_rungs_takes_of_each_quota(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    spot = JOB.replace("3600s", "3600s, strategy: SPOT")
    (tmp_path / "spot.yaml").write_text(spot.replace("standard-8}", f"standard-8, {T4}}}"))
    reserved = JOB.replace("standard-8}", f"standard-8, {T4}, {RESERVED_T4}}}")
    (tmp_path / "reserved.yaml").write_text(reserved)
    dear = {"machineType": "n2-standard-32"}
    gpus = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
    raw = BASE | {
        "serviceAccounts": {"trainer": {}},
        "images": {"x": {"digest": f"sha256:{'a' * 64}"}},
        "jobs": {
            "plain": {"file": "job.yaml"},
            "spot": {"file": "spot.yaml"},
            "reserved": {"file": "reserved.yaml"},  # its GPUs are there
            "batch": {"file": "job.yaml", "backend": "batch"},  # waits for Compute Engine's
            "laddered": {
                "file": "job.yaml",
                "ladder": [dear, {"machineType": "n1-standard-4", **gpus}],
            },
        },
    }
    stack = from_raw(raw, tmp_path)
    requests = {key: result.request for key, result in stack.check_jobs().items() if result.request}
    prefix = "aiplatform.googleapis.com/custom_model_training"
    assert job_needs(DeclaredStack(stack, requests, ())) == [
        JobNeed(f"{prefix}_cpus", {"plain": 24, "reserved": 24, "laddered": 24}),
        JobNeed(f"{prefix}_n2_cpus", {"laddered": 96}),
        JobNeed(f"{prefix}_nvidia_t4_gpus", {"laddered": 6}),
        JobNeed(f"{prefix}_preemptible_cpus", {"spot": 24}),
        JobNeed(f"{prefix}_preemptible_nvidia_t4_gpus", {"spot": 3}),
    ]
