"""Keys and images of jobs make the grants they need, or say whose duty they are."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.unit.infra.stacks import external_report, planned, stack
from vertex_training.plan import external_grants, grants
from vertex_training.plan.job_grants import batch_grants, job_grants

AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
CODE = "serviceAccount:service-109876543210@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
KEY = "projects/{}/locations/us-central1/keyRings/training/cryptoKeys/disks"
IMAGE = "us-docker.pkg.dev/acme-images/shared/train"


def job(key: str = "", *images: str) -> dict[str, Any]:
    pools = [{"containerSpec": {"imageUri": image}} for image in images]
    encryption = {"encryptionSpec": {"kmsKeyName": key}} if key else {}
    return {"jobSpec": {"workerPoolSpecs": pools}, **encryption}


@pytest.mark.parametrize("project", ["acme-ml-prod", "109876543210"])
def test_a_key_of_the_project_is_granted_by_the_stack(project: str) -> None:
    [grant] = job_grants(stack(), [job(KEY.format(project))])
    assert (grant.type, grant.role, grant.member) == (grants.ON_KEY, grants.USE_KEY, AGENT)
    assert grant.ours
    assert grant.place == KEY.format(project)


def test_a_key_of_another_project_is_its_owners_duty_with_a_command() -> None:
    found = job_grants(stack(), [job(KEY.format("acme-keys"))])
    text = external_grants.report(stack(), None, found)
    assert "key disks" in text
    assert shlex.split(text.splitlines()[-1]) == [
        "gcloud", "kms", "keys", "add-iam-policy-binding", "disks", "--keyring=training",
        "--project=acme-keys", "--location=us-central1", f"--member={AGENT}",
        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter",
    ]  # fmt: skip


def test_an_image_of_another_project_asks_for_both_agents() -> None:
    found = job_grants(stack(), [job("", f"{IMAGE}@sha256:{'a' * 64}", f"{IMAGE}:v1")])
    assert [(grant.member, grant.ours) for grant in found] == [(AGENT, False), (CODE, False)]
    commands = external_grants.report(stack(), None, found).splitlines()[-2:]
    assert shlex.split(commands[0])[:6] == [
        "gcloud", "artifacts", "repositories", "add-iam-policy-binding", "shared",
        "--project=acme-images",
    ]  # fmt: skip
    assert all("--role=roles/artifactregistry.reader" in line for line in commands)


@pytest.mark.parametrize(
    "image",
    [
        "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/train@sha256:0",
        "us-central1-docker.pkg.dev/109876543210/training-prod/train:v1",
        "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
        "us-docker.pkg.dev/deeplearning-platform-release/gcr.io/x:latest",
        "docker.io/library/python:3.11",
        "python",
    ],
)
def test_images_that_can_be_pulled_already_ask_for_nothing(image: str) -> None:
    assert job_grants(stack(), [job("", image)]) == []


def test_an_executor_image_counts_and_each_grant_is_there_once() -> None:
    executor = {"pythonPackageSpec": {"executorImageUri": f"{IMAGE}:v1"}}
    both = {"jobSpec": {"workerPoolSpecs": [executor, {}]}}
    found = job_grants(stack(), [both, both, job(KEY.format("k-1"), f"{IMAGE}:v2")])
    assert len(found) == len({grant.key for grant in found}) == 3


@pytest.mark.parametrize("key", ["", "disks", "projects/p/keyRings/r", KEY.format("p") + "/x"])
def test_what_is_no_key_makes_no_grant(key: str) -> None:
    assert job_grants(stack(), [job(key), {}, {"jobSpec": {}}]) == []


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


def test_all_that_jobs_on_batch_need_is_granted_once() -> None:
    trainer = "trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
    guest = "trainer-prod@acme-guests.iam.gserviceaccount.com"
    own = "us-central1-docker.pkg.dev/109876543210/training-prod/x:v1"
    messages = [job("", own, f"{IMAGE}:v1", "python:3.11") for _ in range(2)]
    for message, account in zip(messages, (trainer, guest), strict=True):
        message["jobSpec"]["serviceAccount"] = account
    settings = stack(serviceAccounts={"trainer": {}})
    project, reader = "acme-ml-prod", "roles/artifactregistry.reader"
    ours = f"projects/{project}/locations/us-central1/repositories/training-prod"
    theirs = "projects/acme-images/locations/us/repositories/shared"
    expected = []
    for account in (trainer, guest):
        name = "trainer-prod" if account == trainer else account
        member = f"serviceAccount:{account}"
        expected.append(
            (f"batch-reports-{name}", "roles/batch.agentReporter", member, project, "", True)
        )
        if account == trainer:
            submits = "batch-submits-group:ml@example.com"
            ml = "group:ml@example.com"
            expected.append((submits, "roles/batch.jobsEditor", ml, project, "", True))
        key = f"batch-pulls-{project}-us-central1-training-prod-{name}"
        expected.append((key, reader, member, project, ours, True))
        key = f"batch-pulls-acme-images-us-shared-{name}"
        expected.append((key, reader, member, "acme-images", theirs, False))
    assert whole(batch_grants(settings, [*messages, *messages])) == expected


OWN = "serviceAccount:trainer@acme-ml-prod.iam.gserviceaccount.com"
OTHER = "serviceAccount:trainer@acme-two.iam.gserviceaccount.com"


def test_accounts_of_one_id_in_two_projects_are_granted_each_their_own_in_any_order() -> None:
    jobs = [job("", "us-central1-docker.pkg.dev/acme-ml-prod/x/y:v1") for _ in range(4)]
    for message, member in zip(jobs, (OTHER, OWN, OWN, OTHER), strict=True):
        message["jobSpec"] |= tracked(member.partition(":")[2])["jobSpec"]
    pulls, name = "batch-pulls-acme-ml-prod-us-central1-x-", OTHER.partition(":")[2]
    for messages in (jobs, jobs[::-1], jobs[1:], jobs[2:]):
        assert {grant.key: grant.member for grant in job_grants(stack(), messages)} == {
            "tensorboard-trainer": OWN,
            f"tensorboard-{name}": OTHER,
        }
        assert {grant.key: grant.member for grant in batch_grants(stack(), messages)} == {
            "batch-reports-trainer": OWN,
            f"{pulls}trainer": OWN,
            f"batch-reports-{name}": OTHER,
            f"{pulls}{name}": OTHER,
        }
