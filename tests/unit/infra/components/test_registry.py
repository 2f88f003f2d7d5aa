"""Every setting of the repository, of secrets and of a TensorBoard instance; the build account."""

import pytest

from tests.unit.infra.recorder import registered

DAY = 24 * 60 * 60
LABELS = {"managed-by": "pulumi", "stack": "dev", "team": "ml-platform"}
KEY = "projects/acme-ml-dev/locations/us-central1/keyRings/ml/cryptoKeys/training"

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
