"""Each refusal of a project, one at a time, before anything is made.

A row is a fault in the words of ``vt local fault add``, and the subject, the answer and the command
that mends it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from localgcp.projects import local_project_number
from tests.unit.vt.preflight.conftest import (
    HOST,
    IMAGES,
    KEY,
    OF_OTHERS,
    PROJECT,
    STATE,
    TOKEN,
    Rehearsal,
)
from vertex_training_cli.preflight.answers import Answer, Verdict

NAME = f"projects/{PROJECT}"
BUCKET = f"{PROJECT}-data-prod"
TRAINER = f"trainer-prod@{PROJECT}.iam.gserviceaccount.com"
REPOSITORY = f"{NAME}/locations/us-central1/repositories/training-prod"
AGENT = f"service-{local_project_number(PROJECT)}@gcp-sa-aiplatform.iam.gserviceaccount.com"


class Refusal(NamedTuple):
    """A fault, and what is told of it."""

    fault: str
    subject: str
    answer: str
    mend: str
    made: tuple[str, ...] = ()
    """Ids of what the stack has made already."""


def patch(service: str, method: str, match: str = "", **fields: object) -> str:
    where = f" --match {match}" if match else ""
    return f"{service} patch --method {method} --patch '{json.dumps(fields)}'{where}"


def lacks(permission: str, times: int = 0) -> str:
    return f"iam deny --method TestIamPermissions --match {permission} --times {times}"


def own_bucket(**fields: object) -> str:
    number = local_project_number(PROJECT)
    there = {"projectNumber": number, "location": "US-CENTRAL1", "storageClass": "STANDARD"}
    return patch("storage", "buckets.get", BUCKET, **{**there, **fields})


REFUSALS = {
    "the project is not there": Refusal(
        f"cloudresourcemanager error --code 404 --match {PROJECT}", NAME, "it is not there",
        "gcloud projects create",
    ),
    "the project is being deleted": Refusal(
        patch("cloudresourcemanager", "projects.get", PROJECT, state="DELETE_REQUESTED"),
        NAME, "DELETE_REQUESTED", "gcloud projects undelete",
    ),
    "the number is of another project": Refusal(
        patch("cloudresourcemanager", "projects.get", name="projects/12"),
        NAME, "12, and the stack file says", "set projectNumber in Pulumi.prod.yaml to 12",
    ),
    "nobody pays": Refusal(
        patch("cloudbilling", "projects.getBillingInfo", billingEnabled=False),
        NAME, "off", "gcloud billing projects link",
    ),
    "no API can be switched on": Refusal(
        patch("serviceusage", "services.list", PROJECT,
              services=[{"config": {"name": "cloudresourcemanager.googleapis.com"}}]),
        f"{NAME}/services/serviceusage.googleapis.com", "off", "gcloud services enable",
    ),
    "who deploys may make no bucket": Refusal(
        lacks("storage.buckets.create"), NAME, "lacks storage.buckets.create",
        "gcloud iam roles create",
    ),
    "who deploys may switch on no API": Refusal(
        lacks("serviceusage.services.enable", 1), NAME,
        "lacks serviceusage.services.enable", "gcloud iam roles create",
    ),
    "who deploys may make no account": Refusal(
        lacks("iam.serviceAccounts.create"), NAME, "lacks iam.serviceAccounts.create",
        "gcloud iam roles create",
    ),
    "who deploys may grant nothing on the project": Refusal(
        lacks("resourcemanager.projects.setIamPolicy", 1), NAME,
        "lacks resourcemanager.projects.setIamPolicy", "gcloud iam roles create",
    ),
    "who deploys may submit no job": Refusal(
        lacks("aiplatform.customJobs.create"), NAME, "lacks aiplatform.customJobs.create",
        "gcloud iam roles create",
    ),
    "who deploys may make no repository": Refusal(
        lacks("artifactregistry.repositories.create"), NAME,
        "lacks artifactregistry.repositories.create", "gcloud iam roles create",
    ),
    "who deploys may make no subnet in the host project": Refusal(
        lacks("compute.subnetworks.create"), f"projects/{HOST}", "lacks compute.subnetworks.create",
        "gcloud iam roles create",
    ),
    "who deploys may not grant on the bucket of others": Refusal(
        f"iam deny --method TestIamPermissions --match b/{OF_OTHERS} --times 0",
        f"b/{OF_OTHERS}", "lacks storage.buckets.getIamPolicy, storage.buckets.setIamPolicy",
        "its owner grants a role",
    ),
    "who deploys may not grant on the secret of others": Refusal(
        f"iam deny --method TestIamPermissions --match {TOKEN} --times 0",
        TOKEN, "lacks secretmanager.secrets.getIamPolicy", "its owner grants a role",
    ),
    "who deploys may not act as the account": Refusal(
        lacks("iam.serviceAccounts.actAs"), TRAINER, "no, or it does not exist",
        "gcloud iam service-accounts add-iam-policy-binding",
        (f"{NAME}/serviceAccounts/{TRAINER}",),
    ),
    "who deploys may not write the state": Refusal(
        f"iam deny --method TestIamPermissions --match b/{STATE} --times 0",
        f"b/{STATE}", "lacks storage.objects.create", "`pulumi up` in bootstrap/",
    ),
    "who deploys may not decrypt the state": Refusal(
        lacks("cloudkms.cryptoKeyVersions.useToDecrypt"), KEY,
        "lacks cloudkms.cryptoKeyVersions.useToDecrypt", "`pulumi up` in bootstrap/",
    ),
    "a bucket's name is taken by somebody else": Refusal(
        f"storage error --method buckets.get --code 403 --match {BUCKET}", f"gs://{BUCKET}",
        "taken, by a project that the caller may not read", "give it another name",
    ),
    "a bucket's name is taken by another project of ours": Refusal(
        own_bucket(projectNumber="7"), f"gs://{BUCKET}", "taken, by project 7",
        "give it another name",
    ),
    "a bucket is there that the state does not have": Refusal(
        own_bucket(), f"gs://{BUCKET}", "it exists, and the state does not have it",
        f"pulumi import 'gcp:storage/bucket:Bucket' 'storage-data' '{BUCKET}' --stack prod",
    ),
    "a bucket is in another place than declared": Refusal(
        own_bucket(location="EU"), f"gs://{BUCKET}", "EU, and US-CENTRAL1 is declared",
        "declare EU", (BUCKET,),
    ),
    "the bucket of others is gone": Refusal(
        f"storage error --method buckets.get --code 404 --match {OF_OTHERS}", f"gs://{OF_OTHERS}",
        "no", "gcloud storage buckets create",
    ),
    "an account is there that the state does not have": Refusal(
        patch("iam", "serviceAccounts.get", TRAINER, email=TRAINER),
        f"{NAME}/serviceAccounts/{TRAINER}", "it exists, and the state does not have it",
        "pulumi import 'gcp:serviceaccount/account:Account'",
    ),
    "a repository is there that the state does not have": Refusal(
        patch("artifactregistry", "repositories.get", name=REPOSITORY), REPOSITORY,
        "it exists, and the state does not have it", "pulumi import 'gcp:artifactregistry",
    ),
    "a secret is there that the state does not have": Refusal(
        patch("secretmanager", "secrets.get", "wandb", name="wandb-api-key-prod"),
        f"{NAME}/secrets/wandb-api-key-prod", "it exists, and the state does not have it",
        "pulumi import 'gcp:secretmanager/secret:Secret'",
    ),
    "the key's version is disabled": Refusal(
        patch("cloudkms", "cryptoKeys.get", primary={"state": "DISABLED"}), KEY, "DISABLED",
        "gcloud kms keys versions list --key=training",
    ),
    "the key is gone": Refusal(
        "cloudkms error --code 404", KEY, "it is not there", "gcloud kms keys versions list",
    ),
    "an agent may not pull from another project": Refusal(
        f"iam patch --method GetIamPolicy --match {IMAGES} --times 1 --patch "
        + "'" + json.dumps({"bindings": [{"role": "roles/artifactregistry.reader", "members": [
            f"serviceAccount:{AGENT}"]}]}) + "'",
        IMAGES, "not by its IAM policy", "gcloud artifacts repositories add-iam-policy-binding",
    ),
}  # fmt: skip


def refused(rehearsal: Rehearsal) -> list[Answer]:
    return [each for each in rehearsal.answers() if each.verdict is Verdict.REFUSED]


@pytest.mark.parametrize("case", REFUSALS)
def test_each_refusal_is_told_with_what_mends_it(rehearsal: Rehearsal, case: str) -> None:
    refusal = REFUSALS[case]
    rehearsal.made = frozenset(refusal.made)
    rehearsal.add_fault(refusal.fault)
    found = refused(rehearsal)
    assert [each.subject for each in found] == [refusal.subject]
    assert found[0].answer.startswith(refusal.answer)
    assert found[0].mend.startswith(refusal.mend)
    assert found[0].meets


@pytest.mark.parametrize(
    "permission", ["resourcemanager.projects.setIamPolicy", "iam.serviceAccounts.setIamPolicy"]
)
def test_a_right_that_ci_has_for_some_roles_alone_is_a_warning_where_it_cannot_be_asked(
    rehearsal: Rehearsal, permission: str
) -> None:
    rehearsal.add_fault(lacks(permission, 1))
    rehearsal.as_ci = True
    [found] = [each for each in rehearsal.answers() if each.verdict is Verdict.WARNING]
    assert found.answer == f"{permission}: not held without a condition"
    assert found.meets.startswith("403 at ")
    assert "`pulumi up` in bootstrap/" in found.mend
    assert refused(rehearsal) == []


def test_what_ci_has_without_a_condition_is_refused_beside_it(rehearsal: Rehearsal) -> None:
    rehearsal.add_fault(lacks("iam.serviceAccounts.create"))
    rehearsal.as_ci = True
    [found] = refused(rehearsal)
    assert found.answer.startswith("lacks iam.serviceAccounts.create")


def test_a_secret_without_an_enabled_version_is_a_warning(rehearsal: Rehearsal) -> None:
    rehearsal.add_fault(patch("secretmanager", "versions.get", state="DISABLED"))
    found = [each for each in rehearsal.answers() if each.verdict is Verdict.WARNING]
    assert [(each.subject, each.answer) for each in found] == [
        (f"{TOKEN}/versions/latest", "DISABLED")
    ]
