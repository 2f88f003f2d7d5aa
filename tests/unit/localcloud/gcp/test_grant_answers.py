"""What each kind of grant returns and refuses, and what is left of it when something goes."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError
from localgcp.gcp.services.grants import rewrite
from localgcp.inventory.store import ACCOUNT, BUCKET, Binding
from tests.unit.localcloud.gcp.estate import NUMBER, PROJECT, SUBNET, Estate, told, write_policy

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


ON_EACH = [
    (PROJECT_GRANT, {"project": PROJECT}, f"projects/{PROJECT}", "project", {}),
    (ACCOUNT_GRANT, {"serviceAccountId": TRAINER}, TRAINER_PATH, "service account",
     {"serviceAccountId": TRAINER_PATH}),
    (BUCKET_GRANT, {"bucket": "data"}, "b/data", "storage bucket", {"bucket": "b/data"}),
    (REPOSITORY_GRANT, {"repository": "r"}, REPOSITORY, "artifactregistry repository",
     {"repository": REPOSITORY, "project": PROJECT, "location": "us-west1"}),
    (SECRET_GRANT, {"secretId": "s"}, SECRET, "secretmanager secret",
     {"secretId": SECRET, "project": PROJECT}),
    (SUBNET_GRANT, {"subnetwork": "s"}, SUBNET, "compute subnetwork",
     {"subnetwork": SUBNET, "project": PROJECT, "region": "us-west1"}),
    (DATASET_GRANT, {"datasetId": "clicks"}, f"projects/{PROJECT}/datasets/clicks",
     "Bigquery Dataset", {"project": PROJECT}),
    (KEY_GRANT, {"cryptoKeyId": KEY}, KEY, "KMS CryptoKey", {"cryptoKeyId": KEY}),
]  # fmt: skip


@pytest.mark.usefixtures("deleted_buckets")
@pytest.mark.parametrize(("token", "on", "path", "title", "made"), ON_EACH)
def test_a_grant_returns_what_it_is_on(
    granted: Estate, token: str, on: dict[str, Any], path: str, title: str, made: dict[str, Any]
) -> None:
    cloud, kind = granted.kind(token)
    inputs = {**on, "role": "roles/viewer", "member": MEMBER}

    found = kind.create(cloud, inputs)

    policy = granted.store.policy(path)
    assert policy.bindings == (Binding("roles/viewer", (MEMBER,)),)
    given = {key: value for key, value in found.outputs.items() if key != "condition"}
    assert given == {**inputs, **made, "etag": policy.etag}
    assert found.id == f"{path.removeprefix('projects/') if token == PROJECT_GRANT else path}" + (
        f"/roles/viewer/{MEMBER}"
    )
    assert kind.owner(cloud, found.id) == PROJECT
    read = kind.read(cloud, found.id)
    assert read is not None
    assert (read.id, read.outputs["etag"]) == (found.id, policy.etag)
    kind.delete(cloud, found.id, found.outputs)
    assert granted.store.policy(path).bindings == ()
    assert kind.read(cloud, found.id) is None


@pytest.mark.parametrize(("token", "on", "path", "title", "made"), ON_EACH)
def test_a_grant_needs_the_api_of_its_resource(
    estate: Estate, token: str, on: dict[str, Any], path: str, title: str, made: dict[str, Any]
) -> None:
    cloud, kind = estate.kind(token)
    service, called = APIS[token]
    with pytest.raises(CloudError) as refused:
        kind.create(cloud, {**on, "role": "roles/viewer", "member": MEMBER})
    assert str(refused.value) == (
        f'Error applying IAM policy for {title} "{path}": googleapi: Error 403: {called} has not '
        f"been used in project {PROJECT} before or it is disabled. Enable it by adding "
        f"{service}.googleapis.com to the stack's gcp.projects.Service resources, and make this "
        "resource depend on it, SERVICE_DISABLED"
    )


def test_the_policy_of_a_project_is_the_business_of_the_providers_own(granted: Estate) -> None:
    """The API is on there alone."""
    inputs = {"project": "local-a", "role": "roles/viewer", "member": MEMBER}
    cloud, kind = granted.kind(PROJECT_GRANT)
    assert kind.create(cloud, inputs).id == f"local-a/roles/viewer/{MEMBER}"
    without, _ = granted.kind(PROJECT_GRANT, "")
    assert "has not been used in project local-a before" in str(
        told(lambda: kind.create(without, inputs))
    )


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


AGENT = f"service-{NUMBER}@gcp-sa-aiplatform.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    "member",
    [
        f"serviceAccount:{TRAINER}",
        f"serviceAccount:{AGENT}",
        f"serviceAccount:{AGENT.replace('aiplatform.', 'aiplatform-cc.')}",
        "serviceAccount:any@acme.iam.gserviceaccount.com",
        "serviceAccount:service-1@gcp-sa-aiplatform.iam.gserviceaccount.com",
        "serviceAccount:1-compute@developer.gserviceaccount.com",
        "user:ada@example.com",
    ],
)
def test_an_account_that_exists_or_is_another_clouds_is_granted(
    granted: Estate, member: str
) -> None:
    granted.store.put("gcp:projects/serviceIdentity:ServiceIdentity", "i", PROJECT, {},
                      {"email": AGENT})  # fmt: skip
    cloud, kind = granted.kind(BUCKET_GRANT)
    kind.create(cloud, {"bucket": "data", "role": "organizations/1/roles/x.Y_2", "member": member})
    assert granted.store.policy("b/data").bindings == (
        Binding("organizations/1/roles/x.Y_2", (member,)),
    )


@pytest.mark.parametrize(
    ("token", "inputs", "path"),
    [
        (SUBNET_GRANT, {"subnetwork": f"https://www.googleapis.com/compute/v1/{SUBNET}"}, SUBNET),
        (SUBNET_GRANT, {"subnetwork": SUBNET.replace(PROJECT, NUMBER)}, SUBNET),
        (SUBNET_GRANT, {"subnetwork": "s", "region": "eu", "project": "local-a"},
         "projects/local-a/regions/eu/subnetworks/s"),
        (REPOSITORY_GRANT, {"repository": "r", "location": "eu", "region": "us"},
         f"projects/{PROJECT}/locations/eu/repositories/r"),
        (BUCKET_GRANT, {"bucket": "b/data"}, "b/data"),
        (BUCKET_GRANT, {"bucket": "data", "project": "local-a"}, "b/data"),
        (PROJECT_GRANT, {"project": "local-a"}, "projects/local-a"),
        (KEY_GRANT, {"cryptoKeyId": "locations/l/keyRings/k/cryptoKeys/c"},
         f"projects/{PROJECT}/locations/l/keyRings/k/cryptoKeys/c"),
    ],
)  # fmt: skip
def test_a_resource_is_named_in_short_in_full_or_by_its_address(
    estate: Estate, token: str, inputs: dict[str, Any], path: str
) -> None:
    cloud, kind = estate.kind(token)
    assert kind.id(cloud, {**inputs, "role": "roles/r", "member": "m"}) == (
        f"{path.removeprefix('projects/') if token == PROJECT_GRANT else path}/roles/r/m"
    )


def test_a_condition_is_part_of_a_grant(granted: Estate) -> None:
    cloud, kind = granted.kind(BUCKET_GRANT)
    inputs = {"bucket": "data", "role": "roles/viewer", "member": MEMBER,
              "condition": {"title": "t", "expression": "true", "__defaults": []}}  # fmt: skip
    assert kind.id(cloud, inputs) == f"b/data/roles/viewer/{MEMBER}/t//true"
    inputs["condition"]["description"] = "d"
    found = kind.create(cloud, inputs)
    condition = {"title": "t", "description": "d", "expression": "true"}
    assert found.id == f"b/data/roles/viewer/{MEMBER}/t/d/true"
    assert found.outputs["condition"] == condition
    assert granted.store.policy("b/data").bindings == (
        Binding("roles/viewer", (MEMBER,), condition),
    )


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


def test_what_an_account_was_granted_goes_with_it_and_so_do_grants_on_it(granted: Estate) -> None:
    member = f"serviceAccount:{TRAINER}"
    write_policy(granted, TRAINER_PATH, Binding("roles/viewer", (MEMBER,)))
    write_policy(granted, "b/data", Binding("roles/viewer", (member, MEMBER)))
    write_policy(granted, "b/other", Binding("roles/viewer", (MEMBER,)))
    untouched = granted.store.policy("b/other")
    cloud, kind = granted.kind(ACCOUNT)
    kind.delete(cloud, TRAINER_PATH, {"email": TRAINER, "project": PROJECT})
    policies = {path: policy.bindings for path, policy in granted.store.policies().items()}
    left = (Binding("roles/viewer", (MEMBER,)),)
    assert policies == {"b/data": left, "b/other": left}
    assert granted.store.policy("b/other").etag == untouched.etag
    assert granted.store.get(ACCOUNT, TRAINER_PATH) is None
