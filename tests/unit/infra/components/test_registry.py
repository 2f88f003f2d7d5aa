"""Every setting of the repository, of secrets and of a TensorBoard instance; the build account."""

import pytest

from tests.unit.infra.recorder import grants, registered

DAY = 24 * 60 * 60
LABELS = {"managed-by": "pulumi", "stack": "dev", "team": "ml-platform"}
KEY = "projects/acme-ml-dev/locations/us-central1/keyRings/ml/cryptoKeys/training"
DIGEST = "sha256:" + "1234abcd" * 8

#: A repository that a stack file says nothing of.
PLAIN = {
    "project": "acme-ml-dev",
    "location": "us-central1",
    "repositoryId": "training-dev",
    "description": "Training images of stack dev",
    "format": "DOCKER",
    "dockerConfig": {"immutableTags": False},
    "cleanupPolicies": [
        {
            "id": "delete-untagged",
            "action": "DELETE",
            "condition": {"tagState": "UNTAGGED", "olderThan": f"{30 * DAY}s"},
        },
        {"id": "keep-newest", "action": "KEEP", "mostRecentVersions": {"keepCount": 10}},
    ],
    "labels": LABELS,
}


def repository(**changes):
    found = registered("dev", jobs={}, **changes)
    type_, inputs = found["registry-docker"]
    assert type_ == "gcp:artifactregistry/repository:Repository"
    return inputs


def test_a_repository_deletes_untagged_images_and_keeps_the_newest():
    assert repository(images={}) == PLAIN


def test_images_that_the_stack_pins_are_kept():
    kept = {"id": "keep-pinned", "action": "KEEP", "condition": {"versionNamePrefixes": [DIGEST]}}
    images = {"titanic": {"context": "jobs/titanic", "digest": DIGEST}}
    assert repository(images=images) == PLAIN | {
        "cleanupPolicies": [*PLAIN["cleanupPolicies"], kept]
    }


@pytest.mark.parametrize(("given", "said"), [(True, "INHERITED"), (False, "DISABLED")])
def test_every_setting_of_a_repository_is_passed_on(given, said):
    made = repository(
        images={},
        encryption={"key": KEY},
        registry={
            "name": "images",
            "immutableTags": True,
            "scanning": given,
            "keepVersions": 3,
            "deleteUntaggedAfterDays": 2,
        },
    )
    untagged, newest = PLAIN["cleanupPolicies"]
    condition = {"tagState": "UNTAGGED", "olderThan": f"{2 * DAY}s"}
    assert made == PLAIN | {
        "repositoryId": "images",
        "dockerConfig": {"immutableTags": True},
        "kmsKeyName": KEY,
        "vulnerabilityScanningConfig": {"enablementConfig": said},
        "cleanupPolicies": [
            untagged | {"condition": condition},
            newest | {"mostRecentVersions": {"keepCount": 3}},
        ],
    }


def test_of_a_repository_that_exists_nothing_is_made():
    path = "projects/acme-images/locations/us-central1/repositories/training"
    found = registered("dev", jobs={}, images={}, registry={"existing": path})
    assert "registry-docker" not in found


def test_the_account_that_builds_may_read_sources_push_and_log_and_nothing_else():
    found = registered("dev", jobs={})
    type_, account = found["images-account"]
    assert type_ == "gcp:serviceaccount/account:Account"
    assert account == {
        "project": "acme-ml-dev",
        "accountId": "image-build-dev",
        "displayName": "Builds of images (dev)",
    }
    email = "image-build-dev@acme-ml-dev.iam.gserviceaccount.com"
    assert {row[1:] for row in grants(found) if row[0] == f"serviceAccount:{email}"} == {
        ("roles/storage.objectViewer", "acme-ml-dev-staging-dev"),
        ("roles/artifactregistry.writer", "training-dev"),
        ("roles/logging.logWriter", "acme-ml-dev"),
    }


def test_a_secret_is_kept_in_the_region_and_has_no_value():
    secrets = {
        "wandb-api-key": {"description": "API key"},
        "other": {"labels": {"team": "vision"}},
    }
    found = registered("dev", jobs={}, secrets=secrets)
    plain = {
        "project": "acme-ml-dev",
        "replication": {"userManaged": {"replicas": [{"location": "us-central1"}]}},
        "labels": LABELS,
    }
    assert found["secrets-wandb-api-key"] == (
        "gcp:secretmanager/secret:Secret",
        plain | {"secretId": "wandb-api-key-dev", "annotations": {"description": "API key"}},
    )
    assert found["secrets-other"][1] == plain | {
        "secretId": "other-dev",
        "labels": LABELS | {"team": "vision"},
    }
    assert not [name for name, (type_, _) in found.items() if "ersion:SecretVersion" in type_]


@pytest.mark.parametrize("key", [KEY, ""])
def test_a_tensorboard_instance_has_its_name_and_the_key_of_jobs(key):
    encryption = {"encryption": {"key": key}} if key else {}
    found = registered("dev", jobs={}, tensorboard="experiments", **encryption)
    assert found["tensorboard-instance"] == (
        "gcp:vertex/aiTensorboard:AiTensorboard",
        {
            "project": "acme-ml-dev",
            "region": "us-central1",
            "displayName": "experiments",
            "description": "Logs of training jobs of stack dev",
            "labels": LABELS,
            **({"encryptionSpec": {"kmsKeyName": key}} if key else {}),
        },
    )


def test_a_tensorboard_instance_that_is_there_is_not_made():
    path = "projects/210987654321/locations/us-central1/tensorboards/1234567890"
    found = registered("dev", jobs={}, tensorboard=path)
    assert not [name for name in found if name.startswith("tensorboard")]
