"""Keys and images of jobs make the grants they need, or say whose duty they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import external_report, planned, stack
from vertex_training.plan import grants
from vertex_training.plan.job_grants import batch_grants, job_grants

AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
KEY = "projects/{}/locations/us-central1/keyRings/training/cryptoKeys/disks"
IMAGE = "us-docker.pkg.dev/acme-images/shared/train"


def job(key: str = "", *images: str) -> dict[str, Any]:
    pools = [{"containerSpec": {"imageUri": image}} for image in images]
    encryption = {"encryptionSpec": {"kmsKeyName": key}} if key else {}
    return {"jobSpec": {"workerPoolSpecs": pools}, **encryption}


def test_every_such_grant_is_in_the_table_with_its_reason() -> None:
    found = job_grants(stack(), [job(KEY.format("acme-ml-prod"), f"{IMAGE}:v1")])
    assert all(grants.reason(grant.type, grant.role) for grant in found)
    assert external_report(planned()) == ""


def tracked(account: str) -> dict[str, Any]:
    name = "projects/109876543210/locations/us-central1/tensorboards/0"
    return {"jobSpec": {"tensorboard": name, "serviceAccount": account}}


def test_the_account_of_a_job_with_a_tensorboard_may_call_vertex_once() -> None:
    settings = stack(serviceAccounts={"quiet": {}, "loud": {"callsVertex": True}})
    quiet, loud = (settings.names.account_email(key) for key in ("quiet", "loud"))
    [grant] = job_grants(settings, [tracked(quiet), tracked(quiet), tracked(loud), job()])
    wanted = (grants.ON_PROJECT, grants.CALL_VERTEX, f"serviceAccount:{quiet}")
    assert (grant.type, grant.role, grant.member) == wanted
    assert grant.ours


def test_an_account_on_batch_reports_and_pulls_and_its_submitters_make_jobs() -> None:
    settings = stack(submitters=["group:ml@example.com"], serviceAccounts={"trainer": {}})
    account = settings.names.account_email("trainer")
    own = f"us-central1-docker.pkg.dev/{settings.project}/training-prod/train@sha256:0"
    message = job("", own, f"{IMAGE}:v1", "python:3.11")
    message["jobSpec"]["serviceAccount"] = account
    found = batch_grants(settings, [message, message])
    member = f"serviceAccount:{account}"
    assert [(each.role, each.member, each.ours) for each in found] == [
        (grants.REPORT_STATES, member, True),
        (grants.SUBMIT_TO_BATCH, "group:ml@example.com", True),
        (grants.PULL_IMAGES, member, True),
        (grants.PULL_IMAGES, member, False),
    ]
    assert found[2].place.endswith(
        f"{settings.project}/locations/us-central1/repositories/training-prod"
    )
    assert len({each.key for each in found}) == 4


def whole(found: list[grants.GrantRequest]) -> list[tuple[str, str, str, str, str, bool]]:
    return [(g.key, g.role, g.member, g.project, g.resource, g.ours) for g in found]


@pytest.mark.parametrize(
    ("given", "project", "ours"),
    [
        ("acme-ml-prod", "acme-ml-prod", True),
        ("109876543210", "acme-ml-prod", True),
        ("acme-keys", "acme-keys", False),
    ],
)
def test_the_whole_grant_on_the_key_of_jobs_is_made_once(
    given: str, project: str, ours: bool
) -> None:
    name = KEY.format(given)
    assert whole(job_grants(stack(), [job(name), job(name)])) == [
        (
            f"encrypts-{given}-us-central1-training-disks",
            "roles/cloudkms.cryptoKeyEncrypterDecrypter",
            *(AGENT, project, name, ours),
        )
    ]
    assert job_grants(stack(), [job("no-key"), job()]) == []
