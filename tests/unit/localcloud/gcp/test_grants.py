"""What a grant is on, and the ids under which grants are imported."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp.codec import decode
from tests.unit.localcloud.gcp.harness import Plugin, refused

PROJECT_GRANT = "gcp:projects/iAMMember:IAMMember"
ACCOUNT = "gcp:serviceaccount/account:Account"
SECRET = "gcp:secretmanager/secret:Secret"
SECRET_GRANT = "gcp:secretmanager/secretIamMember:SecretIamMember"
NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
SUBNET_GRANT = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
REPOSITORY_GRANT = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
DATASET_GRANT = "gcp:bigquery/datasetIamMember:DatasetIamMember"
MEMBER = "serviceAccount:trainer@local-p1.iam.gserviceaccount.com"


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    """A local project with an account, a secret and a subnetwork."""
    local.enable("iam", "secretmanager", "cloudresourcemanager", "compute")
    local.create(ACCOUNT, {"accountId": "trainer"})
    local.create(SECRET, {"secretId": "key", "replication": {"auto": {}}})
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    local.create(SUBNET, {"name": "workers", "ipCidrRange": "10.0.0.0/24", "network": "vpc"})
    return local


@pytest.mark.parametrize(
    ("token", "inputs", "written"),
    [
        (
            SECRET_GRANT,
            {"secretId": "key", "role": "roles/secretmanager.secretAccessor"},
            "projects/local-p1/secrets/key roles/secretmanager.secretAccessor " + MEMBER,
        ),
        (
            PROJECT_GRANT,
            {"project": "local-p1", "role": "roles/aiplatform.user"},
            "local-p1 roles/aiplatform.user " + MEMBER,
        ),
    ],
)
def test_a_grant_is_imported_by_resource_role_and_member(
    ready: Plugin, token: str, inputs: dict[str, Any], written: str
) -> None:
    id_, _ = ready.create(token, {**inputs, "member": MEMBER})

    answer = ready.read(token, written)

    assert answer.id == id_
    found = decode(answer.inputs)
    assert (found["role"], found["member"]) == (inputs["role"], MEMBER)


def test_a_grant_that_nobody_made_is_not_imported(ready: Plugin) -> None:
    written = f"projects/local-p1/secrets/key roles/secretmanager.viewer {MEMBER}"
    assert ready.read(SECRET_GRANT, written).id == ""


@pytest.mark.parametrize(
    "name",
    [
        "workers",
        "projects/local-p1/regions/us-central1/subnetworks/workers",
        "https://www.googleapis.com/compute/v1/projects/local-p1/regions/us-central1"
        "/subnetworks/workers",
    ],
)
def test_a_resource_is_named_in_short_in_full_or_by_its_address(ready: Plugin, name: str) -> None:
    inputs = {"subnetwork": name, "role": "roles/compute.networkUser", "member": MEMBER}
    id_, _ = ready.create(SUBNET_GRANT, inputs)
    assert id_ == (
        "projects/local-p1/regions/us-central1/subnetworks/workers/roles/compute.networkUser/"
        + MEMBER
    )


def test_a_grant_on_a_repository_is_on_that_repository_alone(local: Plugin) -> None:
    local.enable("iam", "artifactregistry")
    local.create(ACCOUNT, {"accountId": "trainer"})
    named = {"location": "us-central1", "role": "roles/artifactregistry.writer", "member": MEMBER}
    grant = {**named, "repository": "training"}
    assert "not found" in refused(lambda: local.create(REPOSITORY_GRANT, grant))
    made = {"repositoryId": "training", "location": "us-central1", "format": "DOCKER"}
    local.create(REPOSITORY, made)

    id_, outputs = local.create(REPOSITORY_GRANT, grant)

    place = "projects/local-p1/locations/us-central1/repositories/training"
    assert id_ == f"{place}/roles/artifactregistry.writer/{MEMBER}"
    assert (outputs["repository"], outputs["location"]) == (place, "us-central1")
    assert (outputs["project"], outputs["member"]) == ("local-p1", MEMBER)


def test_a_grant_on_a_dataset_has_no_condition_and_keeps_the_name_as_it_was_given(
    local: Plugin,
) -> None:
    local.enable("iam")
    local.create(ACCOUNT, {"accountId": "trainer"})
    grant = {"datasetId": "clicks", "role": "roles/bigquery.dataViewer", "member": MEMBER}
    assert "has not been used" in refused(lambda: local.create(DATASET_GRANT, grant))
    local.enable("bigquery")
    id_, outputs = local.create(DATASET_GRANT, grant)
    assert id_ == f"projects/local-p1/datasets/clicks/roles/bigquery.dataViewer/{MEMBER}"
    assert (outputs["datasetId"], outputs["project"]) == ("clicks", "local-p1")
    assert decode(local.read(DATASET_GRANT, id_).inputs)["member"] == MEMBER
    condition = {"title": "t", "expression": "true"}
    wrong = {**grant, "condition": condition}
    assert "IAM conditions not allowed" in refused(lambda: local.create(DATASET_GRANT, wrong))
