"""Each question about a request, whole: what is asked, why it may be refused, and what mends it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.infra.customjob.fakes import REQUEST
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol import prerequisites

IMAGE = f"us-docker.pkg.dev/acme-ml/training/titanic@sha256:{'a' * 64}"
RESERVATION = "projects/acme-gpus/zones/us-central1-a/reservations/h100"
EMAIL = "trainer-dev@acme-ml.iam.gserviceaccount.com"


def told(message: Any, kind: JobKind = CUSTOM_JOB) -> list[tuple[Any, ...]]:
    """Subject, what is in the way, what mends it, whether to wait, and whether it lasts."""
    body = json.dumps(message)
    request = replace(REQUEST, parent="projects/acme-ml/locations/us-central1", body=body)
    return [
        (each.subject, each.obstacle.text, each.obstacle.mend, each.waits, each.lasts)
        for each in prerequisites.questions(request, kind)
    ]


def submitting(permission: str, role: str) -> tuple[Any, ...]:
    return (
        "whether jobs may be submitted in acme-ml",
        f"who deploys may not submit jobs in acme-ml ({permission})",
        f"gcloud projects add-iam-policy-binding acme-ml --member=MEMBER --role={role}",
        True,
        False,
    )


SUBMITTING = {
    CUSTOM_JOB: submitting("aiplatform.customJobs.create", "roles/aiplatform.user"),
    TUNING_JOB: submitting("aiplatform.hyperparameterTuningJobs.create", "roles/aiplatform.user"),
    BATCH_JOB: submitting("batch.jobs.create", "roles/batch.jobsEditor"),
}
ACTING = (
    f"whether who deploys may act as {EMAIL}",
    f"who deploys may not act as {EMAIL} (iam.serviceAccounts.actAs), or it does not exist",
    f"list who deploys among the deployers of Pulumi.dev.yaml, or gcloud iam service-accounts "
    f"add-iam-policy-binding {EMAIL} --member=MEMBER --role=roles/iam.serviceAccountUser",
    True,
    False,
)
THERE = (
    f"whether there is an image {IMAGE}",
    f"there is no image {IMAGE}",
    "vt images build titanic --stack dev, or name another",
    False,
    True,
)
RESERVED = (
    f"whether there is a reservation {RESERVATION}",
    f"there is no reservation {RESERVATION}",
    "gcloud compute reservations list --project acme-gpus shows those of us-central1-a; make "
    "h100, or name another",
    False,
    False,
)


def quota(metric: str, count: int) -> tuple[Any, ...]:
    metric = f"aiplatform.googleapis.com/custom_model_training_{metric}_gpus"
    return (
        f"how much quota there is of {metric} in us-central1",
        f"the quota of {metric} in us-central1 is below the {count} that the job needs",
        "ask for more: https://console.cloud.google.com/iam-admin/quotas?project=acme-ml",
        False,
        True,
    )


def pool(accelerator: str = "", count: int = 0, replicas: int = 1, **more: Any) -> dict[str, Any]:
    machine: dict[str, Any] = {"machineType": "n1-standard-8", **more}
    machine |= {"acceleratorType": accelerator, "acceleratorCount": count} if accelerator else {}
    return {
        "machineSpec": machine,
        "replicaCount": replicas,
        "containerSpec": {"imageUri": IMAGE},
    }


T4, H100 = "NVIDIA_TESLA_T4", "NVIDIA_H100_80GB"


@pytest.mark.parametrize("kind", [CUSTOM_JOB, BATCH_JOB])
def test_everything_is_asked_for_once_in_this_order(kind: JobKind) -> None:
    spec = {"serviceAccount": EMAIL, "workerPoolSpecs": [pool(T4, 2), pool(T4, 1, replicas=3)]}
    found = told({"jobSpec": spec}, kind)
    quotas = [quota("nvidia_t4", 5)] if kind is CUSTOM_JOB else []
    assert found == [SUBMITTING[kind], ACTING, THERE, *quotas]


def test_a_request_without_account_image_or_machines_asks_for_the_right_alone() -> None:
    for spec in ({}, {"workerPoolSpecs": []}, {"workerPoolSpecs": [{}]}):
        assert told({"jobSpec": spec}) == [SUBMITTING[CUSTOM_JOB]]
    assert told({}) == [SUBMITTING[CUSTOM_JOB]]


def test_a_package_runs_in_an_image_as_well() -> None:
    package = {"pythonPackageSpec": {"executorImageUri": IMAGE}}
    assert told({"jobSpec": {"workerPoolSpecs": [package]}}) == [SUBMITTING[CUSTOM_JOB], THERE]


def test_a_reservation_is_asked_for_in_place_of_quota() -> None:
    affinity = {
        "reservationAffinity": {"values": [RESERVATION, f"{RESERVATION}/reservationBlocks"]}
    }
    spec = {"workerPoolSpecs": [pool(T4, 2, **affinity), pool(T4, 2)]}
    assert told({"jobSpec": spec}) == [SUBMITTING[CUSTOM_JOB], THERE, RESERVED]
    other = {"reservationAffinity": {"values": ["h100"]}}
    spec = {"workerPoolSpecs": [pool(T4, 2, **other)]}
    assert told({"jobSpec": spec})[2:] == [quota("nvidia_t4", 2)]


@pytest.mark.parametrize(
    ("strategy", "metric"),
    [
        (None, "nvidia_h100"),
        ("STANDARD", "nvidia_h100"),
        ("SPOT", "preemptible_nvidia_h100"),
        ("FLEX_START", "preemptible_nvidia_h100"),
    ],
)
def test_machines_that_may_be_taken_away_have_a_quota_of_their_own(
    strategy: str | None, metric: str
) -> None:
    scheduling = {"strategy": strategy} if strategy else None
    message = {
        "maxTrialCount": 8,
        "parallelTrialCount": 3,
        "trialJobSpec": {"workerPoolSpecs": [pool(H100, 8)], "scheduling": scheduling or {}},
    }
    assert told(message, TUNING_JOB) == [SUBMITTING[TUNING_JOB], THERE, quota(metric, 24)]


@pytest.mark.parametrize(
    ("accelerator", "family"),
    [
        ("NVIDIA_TESLA_T4", "NVIDIA_T4"),
        ("NVIDIA_L4", "NVIDIA_L4"),
        ("NVIDIA_A100_80GB", "NVIDIA_A100_80GB"),
        ("NVIDIA_H100_80GB", "NVIDIA_H100"),
        ("NVIDIA_H100_MEGA_80GB", "NVIDIA_H100_MEGA"),
        ("NVIDIA_H200_141GB", "NVIDIA_H200"),
    ],
)
def test_a_quota_has_the_name_that_refusals_have(accelerator: str, family: str) -> None:
    assert prerequisites.family_of(accelerator) == family
    name = f"aiplatform.googleapis.com/custom_model_serving_{family.lower()}_gpus"
    assert prerequisites.quota_metric(accelerator, preemptible=False, use="serving") == name


@pytest.mark.parametrize(
    ("limit", "enough"), [(None, True), (2, True), (3, True), (1, False), (0, False)]
)
def test_a_quota_of_just_as_many_is_enough(limit: int | None, enough: bool) -> None:
    body = json.dumps({"jobSpec": {"workerPoolSpecs": [pool(T4, 2)]}})
    request = replace(REQUEST, parent="projects/acme-ml/locations/us-central1", body=body)
    *_, last = prerequisites.questions(request, CUSTOM_JOB)
    asked: list[Any] = []

    class Service:
        def quota(self, *given: Any) -> int | None:
            asked.append(given)
            return limit

    service: Any = Service()
    assert last.ask(service) is enough
    metric = "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus"
    assert asked == [("acme-ml", "us-central1", metric)]


def test_only_what_waits_may_change() -> None:
    request = replace(REQUEST, body=json.dumps({"jobSpec": {"serviceAccount": EMAIL}}))
    waits = list(prerequisites.questions(request, CUSTOM_JOB))
    stays = replace(waits[0], waits=False)
    answers = prerequisites.PrerequisiteAnswers
    assert not answers().may_change
    assert answers(tuple(waits)).may_change
    assert not answers((*waits, stays)).may_change
    assert str(answers(tuple(waits[:1]))) == (
        "who deploys may not submit jobs in p (aiplatform.customJobs.create). Hint: gcloud "
        "projects add-iam-policy-binding p --member=MEMBER --role=roles/aiplatform.user"
    )
