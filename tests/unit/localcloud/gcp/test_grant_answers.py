"""What each kind of grant returns and refuses, and what is left of it when something goes."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.gcp.services.grants import rewrite
from localgcp.inventory.store import ACCOUNT, BUCKET, Binding
from tests.unit.localcloud.gcp.estate import NUMBER, PROJECT, Estate, write_policy

MEMBER = "group:ml@example.com"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
TRAINER_PATH = f"projects/{PROJECT}/serviceAccounts/{TRAINER}"
REPOSITORY = f"projects/{PROJECT}/locations/us-west1/repositories/r"
SECRET = f"projects/{PROJECT}/secrets/s"
KEY = f"projects/{PROJECT}/locations/us-west1/keyRings/k/cryptoKeys/c"
PROJECT_GRANT = "gcp:projects/iAMMember:IAMMember"
ACCOUNT_GRANT = "gcp:serviceaccount/iAMMember:IAMMember"
BUCKET_GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"
REPOSITORY_GRANT = "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember"
SECRET_GRANT = "gcp:secretmanager/secretIamMember:SecretIamMember"
SUBNET_GRANT = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
DATASET_GRANT = "gcp:bigquery/datasetIamMember:DatasetIamMember"
KEY_GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
APIS = {
    PROJECT_GRANT: ("cloudresourcemanager", "Cloud Resource Manager API"),
    ACCOUNT_GRANT: ("iam", "Identity and Access Management (IAM) API"),
    BUCKET_GRANT: ("storage", "Cloud Storage API"),
    REPOSITORY_GRANT: ("artifactregistry", "Artifact Registry API"),
    SECRET_GRANT: ("secretmanager", "Secret Manager API"),
    SUBNET_GRANT: ("compute", "Compute Engine API"),
    DATASET_GRANT: ("bigquery", "bigquery.googleapis.com"),
    KEY_GRANT: ("cloudkms", "Cloud Key Management Service (KMS) API"),
}


@pytest.fixture
def granted(estate: Estate) -> Estate:
    """With one resource of each kind that takes grants, and their APIs on."""
    for token, path in (
        (ACCOUNT, TRAINER_PATH),
        (BUCKET, "data"),
        ("gcp:artifactregistry/repository:Repository", REPOSITORY),
        ("gcp:secretmanager/secret:Secret", SECRET),
        ("gcp:kms/cryptoKey:CryptoKey", KEY),
    ):
        outputs = {"email": TRAINER} if token == ACCOUNT else {}
        estate.store.put(token, path, PROJECT, {}, outputs)
    estate.enable(*(service for service, _ in APIS.values()))
    return estate


@pytest.mark.parametrize(
    ("token", "inputs", "said"),
    [
        (BUCKET_GRANT, {"bucket": "gone"}, 'storage bucket "b/gone": googleapi: Error 404: The '
         "specified bucket does not exist., notFound"),
        (ACCOUNT_GRANT, {"serviceAccountId": f"projects/{PROJECT}/serviceAccounts/a@b"},
         f'service account "projects/{PROJECT}/serviceAccounts/a@b": googleapi: Error 404: '
         "Unknown service account: a@b, notFound"),
        (SECRET_GRANT, {"secretId": "t"}, f'secretmanager secret "projects/{PROJECT}/secrets/t": '
         f"googleapi: Error 404: projects/{PROJECT}/secrets/t not found, notFound"),
        (BUCKET_GRANT, {"bucket": "data", "role": "viewer"}, 'storage bucket "b/data": googleapi: '
         "Error 400: Invalid role name: viewer, badRequest"),
        (BUCKET_GRANT, {"bucket": "data", "role": "roles/viewer\n"},
         'storage bucket "b/data": googleapi: Error 400: Invalid role name: roles/viewer\n, '
         "badRequest"),
        (BUCKET_GRANT, {"bucket": "data", "role": f"projects/{PROJECT}/roles/mine"},
         f'storage bucket "b/data": googleapi: Error 400: Role projects/{PROJECT}/roles/mine is '
         "not supported for this resource., badRequest"),
        (BUCKET_GRANT, {"bucket": "data", "member": f"serviceAccount:x@{PROJECT}.iam."
                        "gserviceaccount.com"},
         'storage bucket "b/data": googleapi: Error 400: Service account '
         f"x@{PROJECT}.iam.gserviceaccount.com does not exist., badRequest"),
        *((BUCKET_GRANT, {"bucket": "data", "member": f"serviceAccount:service-{NUMBER}@{domain}"
                          ".iam.gserviceaccount.com"},
           'storage bucket "b/data": googleapi: Error 400: Service account '
           f"service-{NUMBER}@{domain}.iam.gserviceaccount.com does not exist., badRequest")
          for domain in ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")),
    ],
)  # fmt: skip
def test_a_grant_that_cannot_be_made_is_refused(
    granted: Estate, token: str, inputs: dict[str, Any], said: str
) -> None:
    cloud, kind = granted.kind(token)
    with pytest.raises(CloudError) as refused:
        kind.create(cloud, {"role": "roles/viewer", "member": MEMBER, **inputs})
    assert str(refused.value) == f"Error applying IAM policy for {said}"


@pytest.mark.parametrize(
    ("configured", "owner"),
    [(PROJECT, "local-data"), ("local-other", "local-data"), ("", "local-data"), ("acme", "acme")],
)
def test_a_buckets_grant_belongs_to_the_buckets_project(
    estate: Estate, configured: str, owner: str
) -> None:
    estate.store.put(BUCKET, "data", "local-data", {}, {})
    cloud, kind = estate.kind(BUCKET_GRANT, configured)
    assert kind.project(cloud, {"bucket": "data"}) == owner
    assert kind.owner(cloud, f"b/data/roles/viewer/{MEMBER}") == owner
    assert kind.project(cloud, {"bucket": "absent"}) == configured


def test_a_policy_that_always_changes_meanwhile_is_refused_after_a_while(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("localgcp.gcp.services.grants.time.sleep", waited.append)
    cloud, _ = estate.kind(BUCKET_GRANT)
    others = 0

    def change(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        nonlocal others
        others += 1
        write_policy(estate, "b/x", Binding(f"roles/r{others}", ("a",)))
        return (*bindings, Binding("roles/mine", ("a",)))

    with pytest.raises(CloudError) as refused:
        rewrite(cloud, "b/x", "Making", change)
    assert str(refused.value) == (
        "Making: googleapi: Error 409: There were concurrent policy changes., aborted"
    )
    assert estate.store.policy("b/x").bindings == (Binding("roles/r60", ("a",)),)
    assert len(waited) == 60
    assert all(0.001 <= each <= 0.02 for each in waited)
