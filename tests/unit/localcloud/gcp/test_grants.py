"""What a grant is on, and the ids under which grants are imported."""

from __future__ import annotations

import pytest

from localgcp.gcp.codec import decode
from tests.unit.localcloud.gcp.harness import Plugin, refused

ACCOUNT = "gcp:serviceaccount/account:Account"
SECRET = "gcp:secretmanager/secret:Secret"
SECRET_GRANT = "gcp:secretmanager/secretIamMember:SecretIamMember"
NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
SUBNET_GRANT = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
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
