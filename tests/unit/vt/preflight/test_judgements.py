"""Judgements of a preflight, without a cloud: documents in, answers out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from tests.unit.vt.preflight.conftest import HOST, NETWORK, PROJECT
from vertex_training.catalog.resource_types import BUCKET, CONNECTION, ON_BUCKET
from vertex_training.stack import from_raw
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight.answers import Verdict, question
from vertex_training_cli.preflight.constraints import CONSTRAINTS, INSTANCE, NAT
from vertex_training_cli.preflight.effective_policy import (
    EffectivePolicy,
    match_location,
)
from vertex_training_cli.preflight.organization_policies import judge
from vertex_training_cli.preflight.quota_needs import JobNeed, endpoint_needs
from vertex_training_cli.preflight.quotas import judge_endpoints, judge_jobs


def policy(**values: list[str]) -> EffectivePolicy:
    return EffectivePolicy.parse({"spec": {"rules": [{"values": values}]}})


@pytest.mark.parametrize(
    ("location", "value", "expected"),
    [
        ("us-central1", "in:us-locations", True),
        ("US-CENTRAL1", "in:us-central1-locations", True),
        ("us-central1", "in:us-east1-locations", False),
        ("us-central1", "in:europe-locations", False),
        ("us-central1", "us", False),
        ("us-central1-a", "us-central1", None),
    ],
)
def test_groups_of_locations_cover_what_is_in_them(
    location: str, value: str, expected: bool | None
) -> None:
    assert policy(allowedValues=[value]).allows(match_location(location)) is expected


RULES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], Verdict]] = {
    "a bucket with access of its own": (
        "storage.uniformBucketLevelAccess",
        BUCKET,
        {"name": "b", "uniformBucketLevelAccess": False},
        {"enforce": True},
        Verdict.REFUSED,
    ),
    "a public bucket": (
        "storage.publicAccessPrevention",
        ON_BUCKET,
        {"bucket": "b", "member": "allUsers", "role": "r"},
        {"enforce": True},
        Verdict.REFUSED,
    ),
    "everybody is of no customer": (
        "iam.allowedPolicyMemberDomains",
        ON_BUCKET,
        {"bucket": "b", "member": "allUsers", "role": "r"},
        {"values": {"allowedValues": ["C01abcdef"]}},
        Verdict.REFUSED,
    ),
    "a machine with an image of others": (
        "compute.trustedImageProjects",
        INSTANCE,
        {"bootDisk": {"initializeParams": {"image": "debian-cloud/debian-12"}}},
        {"values": {"allowedValues": ["projects/ours"]}},
        Verdict.REFUSED,
    ),
    "a machine with an image that is trusted": (
        "compute.trustedImageProjects",
        INSTANCE,
        {"bootDisk": {"initializeParams": {"image": "projects/ours/global/images/i"}}},
        {"values": {"allowedValues": ["projects/ours"]}},
        Verdict.OK,
    ),
    "no network may be peered": (
        "compute.restrictVpcPeering",
        CONNECTION,
        {"network": NETWORK},
        {"denyAll": True},
        Verdict.REFUSED,
    ),
    "networks of Google may be peered": (
        "compute.restrictVpcPeering",
        CONNECTION,
        {"network": NETWORK},
        {"values": {"allowedValues": ["under:organizations/433637338589"]}},
        Verdict.OK,
    ),
    "some networks may be peered": (
        "compute.restrictVpcPeering",
        CONNECTION,
        {"network": NETWORK},
        {"values": {"allowedValues": ["under:organizations/1"]}},
        Verdict.UNKNOWN,
    ),
    "no NAT": (
        "compute.restrictCloudNATUsage",
        NAT,
        {"name": "n", "project": HOST},
        {"denyAll": True},
        Verdict.REFUSED,
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_a_constraint_judges_what_a_team_declares(
    prod: tuple[StackRef, DeclaredStack], case: str
) -> None:
    name, type_, inputs, rule, expected = RULES[case]
    [constraint] = [each for each in CONSTRAINTS if each.name == name]
    one = dataclasses.replace(prod[1], resources=(DeclaredResource(type_, "x", inputs),))
    subjects = list(constraint.subjects(one))
    assert len(subjects) == 1
    assert subjects[0].project in (PROJECT, HOST)
    document = {"spec": {"rules": [rule]}}
    found = judge(question("p", name), constraint, PROJECT, subjects, document)
    assert found.verdict is expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, Verdict.OK), (12, Verdict.OK), (11, Verdict.WARNING), (7, Verdict.REFUSED)],
)
def test_a_job_above_the_limit_is_refused_and_jobs_above_it_wait(
    limit: int | None, expected: Verdict
) -> None:
    need = JobNeed("m", {"small": 4, "large": 8})
    found = judge_jobs(question("m", "limit"), need, PROJECT, limit)
    assert found.verdict is expected
    assert limit == 12 or not limit or f"{need.peak}" in found.mend


def test_endpoints_take_quota_with_all_replicas_of_all_versions_and_only_warn(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.yaml").write_text("workerPoolSpecs: []\n")
    image = f"us-central1-docker.pkg.dev/acme/serve/serve@sha256:{'0' * 64}"
    gpu = {"type": "NVIDIA_TESLA_T4", "count": 2}
    sections = {
        "jobs": {"titanic": {"file": "job.yaml", "run": 4}},
        "models": {"titanic": {"run": [3, 4], "container": image}},
        "endpoints": {
            "titanic": {
                "machine": "n1-standard-2", "accelerator": gpu, "replicas": {"min": 1, "max": 3},
                "split": {"run 3": 90, "run 4": 10},
            },
            "wide": {
                "model": "titanic", "machine": "a2-ultragpu-1g", "split": {"run 3": 100},
                "accelerator": {"type": "NVIDIA_A100_80GB", "count": 1},
            },
            "bare": {"model": "titanic", "machine": "n1-standard-4", "split": {"run 3": 100}},
        },
    }  # fmt: skip
    declared = DeclaredStack(from_raw(BASE | sections, tmp_path), {}, ())
    prefix = "aiplatform.googleapis.com/custom_model_serving"
    gpus = JobNeed(f"{prefix}_nvidia_t4_gpus", {"titanic": 2 * 3 * 2})
    assert endpoint_needs(declared) == [
        JobNeed(f"{prefix}_cpus", {"titanic": 2 * 3 * 2, "bare": 4}),
        JobNeed(f"{prefix}_nvidia_a100_80gb_gpus", {"wide": 1}),
        gpus,
    ]
    asked = question("m", "limit")
    verdicts = [judge_endpoints(asked, gpus, PROJECT, limit).verdict for limit in (None, 12, 11, 0)]
    assert verdicts == [Verdict.OK, Verdict.OK, Verdict.WARNING, Verdict.WARNING]
