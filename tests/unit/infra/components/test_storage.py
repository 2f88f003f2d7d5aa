"""Every setting of a bucket, of the objects in it, and of the code of jobs."""

import pytest

from tests.unit.infra.recorder import registered

DAY = 24 * 60 * 60
#: Parts of uploads that never finished.
PARTS = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
LABELS = {"managed-by": "pulumi", "stack": "dev", "team": "ml-platform"}


def noncurrent(days):
    """The rule that removes versions which were overwritten or deleted."""
    condition = {"daysSinceNoncurrentTime": days, "withState": "ARCHIVED"}
    return {"action": {"type": "Delete"}, "condition": condition}


PLAIN = {
    "name": "acme-ml-dev-data-dev",
    "project": "acme-ml-dev",
    "location": "US-CENTRAL1",
    "storageClass": "STANDARD",
    "uniformBucketLevelAccess": True,
    "publicAccessPrevention": "enforced",
    "versioning": {"enabled": True},
    "softDeletePolicy": {"retentionDurationSeconds": 7 * DAY},
    "lifecycleRules": [PARTS, noncurrent(30)],
    "forceDestroy": False,
    "labels": LABELS,
}


#: What a stack file gives -> what differs from a bucket without settings.
GIVEN = [
    ({"storageClass": "NEARLINE"}, {"storageClass": "NEARLINE"}),
    ({"forceDestroy": True}, {"forceDestroy": True}),
    ({"keepNoncurrentDays": 3}, {"lifecycleRules": [PARTS, noncurrent(3)]}),
    ({"softDeleteDays": 0}, {"softDeletePolicy": {"retentionDurationSeconds": 0}}),
    ({"softDeleteDays": 90}, {"softDeletePolicy": {"retentionDurationSeconds": 90 * DAY}}),
    (
        {"labels": {"team": "vision", "data-class": "internal"}},
        {"labels": LABELS | {"team": "vision", "data-class": "internal"}},
    ),
    (
        {"versioning": False},
        {"versioning": {"enabled": False}, "lifecycleRules": [PARTS]},
    ),
    (
        {"deleteAfterDays": 14},
        {
            "lifecycleRules": [
                PARTS,
                noncurrent(30),
                {"action": {"type": "Delete"}, "condition": {"age": 14, "withState": "LIVE"}},
            ]
        },
    ),
    (
        {"retention": {"days": 2}, "versioning": False},
        {
            "retentionPolicy": {"retentionPeriod": str(2 * DAY), "isLocked": False},
            "versioning": {"enabled": False},
            "lifecycleRules": [PARTS],
        },
    ),
    (
        {"retention": {"days": 1, "locked": True}, "versioning": False},
        {
            "retentionPolicy": {"retentionPeriod": str(DAY), "isLocked": True},
            "versioning": {"enabled": False},
            "lifecycleRules": [PARTS],
        },
    ),
]
KEPT = {"objects": {"titanic/val.npz": "jobs/data/titanic/val.npz"}}


@pytest.fixture(scope="module")
def found():
    """What a stack with a bucket for each of ``GIVEN`` registers: name -> type and inputs."""
    each = {f"b{number}": given for number, (given, _) in enumerate(GIVEN)}
    return registered("dev", jobs={}, buckets={"data": KEPT, "artifacts": {}} | each)


@pytest.fixture(scope="module")
def made(found):
    return {
        name.removeprefix("storage-"): inputs
        for name, (type_, inputs) in found.items()
        if type_ == "gcp:storage/bucket:Bucket"
    }


def test_a_bucket_is_regional_closed_and_keeps_what_was_deleted_for_a_while(made):
    assert made["data"] == PLAIN
    assert made["artifacts"] == PLAIN | {"name": "acme-ml-dev-artifacts-dev"}


def test_code_is_kept_for_a_week_and_records_for_a_year(made):
    named = {"name": "acme-ml-dev-staging-dev", "lifecycleRules": [PARTS, noncurrent(7)]}
    assert made["staging"] == PLAIN | named
    named = {"name": "acme-ml-dev-control-dev", "lifecycleRules": [PARTS, noncurrent(365)]}
    assert made["control"] == PLAIN | named


@pytest.mark.parametrize("number", range(len(GIVEN)))
def test_a_setting_of_a_bucket_changes_what_it_says_and_nothing_else(made, number):
    named = {"name": f"acme-ml-dev-b{number}-dev"}
    assert made[f"b{number}"] == PLAIN | named | GIVEN[number][1]


def test_a_kept_file_is_an_object_of_its_bucket(found):
    [(name, inputs)] = [
        (name, dict(inputs))
        for name, (type_, inputs) in found.items()
        if type_ == "gcp:storage/bucketObject:BucketObject" and name.startswith("storage-")
    ]
    assert name == "storage-data/titanic/val.npz"
    assert inputs.pop("source").path.endswith("jobs/data/titanic/val.npz")
    assert inputs == {"bucket": "acme-ml-dev-data-dev", "name": "titanic/val.npz"}
