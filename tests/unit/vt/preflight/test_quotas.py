"""Quotas: how much a stack takes of which, and what a limit means for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE, H100, planned
from tests.unit.vt.preflight.documents import COMPUTE, FORBIDDEN, PROJECT, context
from vertex_training.catalog.resource_types import (
    RESERVATION,
)
from vertex_training.customjob.google.prerequisites import quota_path
from vertex_training.stack import from_raw
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight import quotas
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.quota_needs import (
    ComputeNeed,
    GpuFamily,
    JobNeed,
    compute_needs,
    job_needs,
)

ASKED = question("m", "limit")


def mend(wanted: int, project: str = PROJECT) -> str:
    where = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"ask for {wanted} or more: {where}"


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        (None, ASKED.ok("not limited")),
        (12, ASKED.ok("12, of which the endpoints take 12; other use is not asked")),
        (
            11,
            ASKED.warning(
                "11",
                "endpoints take 12 with all replicas: they may not grow to them, or not start",
                mend(12),
            ),
        ),
    ],
)
def test_a_limit_means_that_endpoints_may_not_grow(limit: int | None, answer: Answer) -> None:
    assert quotas.judge_endpoints(ASKED, JobNeed("m", {"a": 4, "b": 8}), PROJECT, limit) == answer


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


USAGE = "https://serviceusage.googleapis.com/"
FAMILY = "compute.googleapis.com/gpus_per_gpu_family"
WHERE = {"region": "us-central1", "gpu_family": "NVIDIA_H100_MEGA"}


def limited(limit: int | None) -> dict[str, Any]:
    value = "-1" if limit is None else str(limit)
    bucket = {"effectiveLimit": value, "dimensions": WHERE}
    return {"consumerQuotaLimits": [{"quotaBuckets": [bucket]}]}


OF_PROJECT = question(f"project {PROJECT}", "quotas of Compute Engine in us-central1")
OF_FAMILY = question(f"{FAMILY} NVIDIA_H100_MEGA", f"limit in us-central1 of {PROJECT}")
READ = "serviceusage.quotas.get"
RESERVED = question("quota RESERVATIONS", f"limit and use in us-central1 of {PROJECT}").ok(
    "0 of 9 are used, and the stack takes 1"
)


@pytest.mark.parametrize(
    ("project", "region", "family", "answers"),
    [
        (FORBIDDEN, {"name": "r"}, None, [OF_PROJECT.unknown(
            f"project {PROJECT} cannot be read: 403 Forbidden", "compute.projects.get")]),
        (None, {"name": "r"}, None,
         [OF_PROJECT.unknown("there is no such project, or Compute Engine is off in it")]),
        (..., ..., limited(40), [RESERVED, OF_FAMILY.ok("40")]),
        (..., ..., limited(39), [RESERVED, OF_FAMILY.refused(
            "39", "the reservations take 40: their creation is refused", mend(40))]),
        (..., ..., None, [RESERVED, OF_FAMILY.unknown("there is no such quota", READ)]),
        (..., ..., {}, [RESERVED, OF_FAMILY.unknown("it has no limit that is known")]),
        (..., ..., FORBIDDEN, [RESERVED, OF_FAMILY.unknown(
            f"{FAMILY} NVIDIA_H100_MEGA cannot be read: 403 Forbidden", READ)]),
    ],
)  # fmt: skip
def test_what_is_made_is_asked_of_project_region_and_family(
    project: Any, region: Any, family: Any, answers: list[Answer]
) -> None:
    quota = {"quotas": [{"metric": "RESERVATIONS", "limit": 9}]}
    documents = {
        f"{COMPUTE}projects/{PROJECT}": {"name": "p"} if project is ... else project,
        f"{COMPUTE}projects/{PROJECT}/regions/us-central1": quota if region is ... else region,
        USAGE + quota_path(PROJECT, FAMILY): family,
    }
    sections = {"reservations": {"h100": {**H100, "name": "h100"}}}
    assert list(quotas.ask(context(documents, reserved("h100"), **sections))) == answers


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
