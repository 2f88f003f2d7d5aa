"""Each policy at its bounds: what is just allowed, and every word of what is just refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.policy import cases
from vertex_training.guardrails.policy import UNKNOWN, Resource, load

POLICIES: Final = {policy.id: policy for policy in load()}
IMAGE: Final = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/pretrain:v1"
KEYS: Final = "projects/acme-kms/locations"
POOL: Final = "request.jobSpec.workerPoolSpecs.0"


def said(
    policy: str,
    resource: str,
    change: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    **given: Any,
) -> list[str]:
    """What a policy says of a correct resource with a change, without its hints."""
    declared = cases.changed(resource, change, **given)
    made = Resource(declared.type, declared.name, declared.props, "prod", declared.protect)
    return [line.partition(" Hint: ")[0] for line in POLICIES[policy].violations(made, settings)]


OLD = ["old versions are deleted after 0 days."]


@pytest.mark.parametrize(
    ("policy", "change", "settings", "lines"),
    [
        ("bucket-regional", {"location": "europe-west4"}, None, []),
        ("bucket-regional", {"location": "EU"}, None, ["location EU is not one region."]),
        ("bucket-regional", {"location": "us-central1-a"}, None,
         ["location us-central1-a is not one region."]),
        ("bucket-regional", {"location": "(absent)"}, None, []),
        ("bucket-closed-to-public", {"publicAccessPrevention": "inherited"}, None,
         ["public access prevention is inherited."]),
        ("bucket-closed-to-public", {"publicAccessPrevention": "unspecified"}, None,
         ["public access prevention is unspecified."]),
        ("bucket-deleted-objects-restorable",
         {"softDeletePolicy.retentionDurationSeconds": 604800}, None, []),
        ("bucket-deleted-objects-restorable",
         {"softDeletePolicy.retentionDurationSeconds": 518400}, None,
         ["deleted objects can be restored for 6 days, not 7."]),
        ("bucket-deleted-objects-restorable", {"softDeletePolicy": "(absent)"}, None, []),
        ("bucket-deleted-objects-restorable",
         {"softDeletePolicy.retentionDurationSeconds": 2592000}, {"minDays": 31},
         ["deleted objects can be restored for 30 days, not 31."]),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"daysSinceNoncurrentTime": 7}}, None, []),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"daysSinceNoncurrentTime": 6}}, None,
         ["old versions are deleted after 6 days."]),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"age": 400, "withState": "ANY"}}, None,
         ["old versions are deleted after 0 days."]),
        ("bucket-old-versions-kept", {"lifecycleRules.1.condition": {"age": 400}}, None,
         ["old versions are deleted after 0 days."]),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"age": 1, "daysSinceNoncurrentTime": 7}}, None, []),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"numNewerVersions": 3, "withState": "ARCHIVED"}}, None,
         ["old versions are deleted after 0 days."]),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"age": 1, "withState": "LIVE"}}, None, []),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1": {"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}},
         None, []),
        ("bucket-old-versions-kept",
         {"lifecycleRules.1.condition": {"age": 1, "withState": UNKNOWN}}, None, []),
        ("bucket-old-versions-kept", {"lifecycleRules.1.condition": "(absent)"}, None, []),
        *(("bucket-old-versions-kept",
           {"lifecycleRules.1.condition": {"age": 1} | state, "versioning": versioning}, None, told)
          for versioning, state, told in (
              ("(absent)", {}, []),
              ({"enabled": False}, {"withState": "ANY"}, []),
              ({"enabled": False}, {"withState": "ARCHIVED"}, OLD),
              ({"enabled": UNKNOWN}, {}, OLD),
          )),
        ("bucket-objects-not-deleted-by-age",
         {"lifecycleRules.2.condition": {"age": 30}}, None, []),
        ("bucket-objects-not-deleted-by-age",
         {"lifecycleRules.2.condition": {"age": 29, "withState": "ANY"}}, None,
         ["objects are deleted after 29 days."]),
        ("bucket-objects-not-deleted-by-age", {"lifecycleRules.2.condition": {}}, None,
         ["objects are deleted after 0 days."]),
        ("bucket-objects-not-deleted-by-age",
         {"lifecycleRules.2.condition": {"age": 29}}, None,
         ["objects are deleted after 29 days."]),
        ("bucket-objects-not-deleted-by-age",
         {"lifecycleRules.2.condition": {"age": 29, "withState": "ARCHIVED"}}, None, []),
        *(("bucket-objects-not-deleted-by-age", {"lifecycleRules.2.condition": {key: 1}}, None, [])
          for key in ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")),
        ("bucket-retention-not-locked",
         {"retentionPolicy": {"isLocked": False, "retentionPeriod": "86400"}}, None, []),
        ("bucket-retention-not-locked",
         {"retentionPolicy": {"isLocked": True, "retentionPeriod": "43200"}}, None, [
             "its retention of 0.5 days is locked, and can never be shortened or removed."]),
        ("bucket-retention-not-locked",
         {"retentionPolicy": {"isLocked": True, "retentionPeriod": UNKNOWN}}, None, [
             "its retention of its days is locked, and can never be shortened or removed."]),
        ("bucket-retention-not-locked", {"retentionPolicy": {"isLocked": True}}, None, [
            "its retention of its days is locked, and can never be shortened or removed."]),
    ],
)  # fmt: skip
def test_a_bucket_at_the_bounds_of_a_policy(
    policy: str, change: dict[str, Any], settings: dict[str, Any] | None, lines: list[str]
) -> None:
    assert said(policy, "bucket", change, settings) == lines


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ("7d", None), ("168h", None), ("10080m", None), ("604800.0s", None), (UNKNOWN, None),
        ("6d", "6 days."), ("167h", "6.95833 days."), ("1m", "0.000694444 days."), ("", "0 days."),
        ("1.2.3s", "1.2.3s, which is no duration."), ("7 d", "7 d, which is no duration."),
        ("1w", "1w, which is no duration."), (7, "7, which is no duration."),
    ],
)  # fmt: skip
def test_the_age_of_an_image_has_any_unit_of_a_duration(after: Any, told: str | None) -> None:
    lines = [f"its clean-up deletes images after {told}"] if told else []
    change = {"cleanupPolicies.0.condition.olderThan": after}
    assert said("registry-keeps-images-in-use", "repository", change) == lines


@pytest.mark.parametrize(
    ("policy", "change", "settings", "lines"),
    [
        ("job-image-by-digest", {f"{POOL}.containerSpec.imageUri": IMAGE}, None,
         [f"workerPoolSpecs[0]: {IMAGE}."]),
        ("job-image-by-digest",
         {"request.jobSpec.workerPoolSpecs.2.containerSpec.imageUri": IMAGE}, None,
         [f"workerPoolSpecs[2]: {IMAGE}."]),
        ("job-image-by-digest", {f"{POOL}.containerSpec.imageUri": IMAGE},
         {"byTag": ["us-central1-docker.pkg.dev/acme-ml-prod/**",
                    "*-docker.pkg.dev/vertex-ai-restricted/training/*"]}, []),
        ("job-dedicated-account", {"request.jobSpec.serviceAccount": "(absent)"}, None,
         ["it names no account."]),
        ("job-dedicated-account",
         {"request.jobSpec.serviceAccount": "acme@appspot.gserviceaccount.com"}, None,
         ["acme@appspot.gserviceaccount.com is nobody's own."]),
        ("job-dedicated-account", {"request.jobSpec.serviceAccount": "x@y.example"}, None,
         ["x@y.example is no account of stack prod in acme-ml-prod."]),
        ("job-dedicated-account",
         {"request.jobSpec.serviceAccount": "x@y.example", "submission": UNKNOWN}, None,
         ["x@y.example is no account of stack prod."]),
        ("job-dedicated-account",
         {"request.jobSpec.serviceAccount": "x-prod@y-1.iam.gserviceaccount.com",
          "submission": UNKNOWN}, None, []),
        ("job-timeout-bounded", {"request.jobSpec.scheduling.timeout": "259200s"}, None, []),
        ("job-timeout-bounded", {"request.jobSpec.scheduling.timeout": "261000s"}, None,
         ["timeout 261000s is 72.5 hours, more than 72."]),
        ("job-timeout-bounded", {"request.jobSpec.scheduling.timeout": "7200s"}, {"maxHours": 1.5},
         ["timeout 7200s is 2 hours, more than 1.5."]),
        ("job-timeout-bounded", {"request.jobSpec.scheduling.timeout": "NaNs"}, None,
         ["timeout NaNs is none, so 168 hours."]),
        ("job-timeout-bounded", {"request.jobSpec.scheduling": "(absent)"}, None,
         ["it has no timeout, so 168 hours."]),
        ("job-in-a-network", {"request.jobSpec.pscInterfaceConfig": "(absent)"}, None,
         ["it is in no network."]),
        ("job-in-a-network", {"request.jobSpec.pscInterfaceConfig": {}}, None,
         ["it is in no network."]),
        ("job-in-a-network", {"request.jobSpec.pscInterfaceConfig": "(absent)"},
         {"without": ["j*"]}, []),
        ("job-in-a-network", {"request.jobSpec.pscInterfaceConfig": "(absent)"},
         {"without": ["J*", "x"]}, ["it is in no network."]),
        ("job-in-a-network", {"request.jobSpec.pscInterfaceConfig": "(absent)",
                              "request.jobSpec.network": "projects/1/global/networks/x"}, None, []),
        ("job-no-secret-in-env", {f"{POOL}.containerSpec.command": ["run", "--db-pass=hunter2"]},
         None, ["workerPoolSpecs[0]: command holds what looks like a secret."]),
        ("job-no-secret-in-env", {f"{POOL}.containerSpec.command": ["run", "--db-pass"],
                                  f"{POOL}.containerSpec.args": ["hunter2"]},
         None, ["workerPoolSpecs[0]: args holds what looks like a secret."]),
        ("job-no-secret-in-env",
         {f"{POOL}.containerSpec.args": ["--db-pass=hunter2", "--db-pass=hunter3"]},
         None, ["workerPoolSpecs[0]: args holds what looks like a secret."]),
        ("job-no-secret-in-env", {f"{POOL}.containerSpec.args": [1, 2]}, None, []),
        ("job-no-secret-in-env",
         {f"{POOL}.containerSpec.env": [{"name": "DB_PASS", "value": "hunter2"},
                                        {"name": "API_KEY", "value": "hunter2"},
                                        {"name": "EPOCHS", "value": "3"}]}, None, [
             "workerPoolSpecs[0]: the value of DB_PASS looks like a secret.",
             "workerPoolSpecs[0]: the value of API_KEY looks like a secret."]),
    ],
)  # fmt: skip
def test_a_job_at_the_bounds_of_a_policy(
    policy: str, change: dict[str, Any], settings: dict[str, Any] | None, lines: list[str]
) -> None:
    assert said(policy, "job", change, settings) == lines


def test_every_rung_of_a_ladder_is_looked_at_and_the_same_thing_said_once() -> None:
    job = cases.changed("job", {}).props
    without = cases.changed("job", {"request.jobSpec.serviceAccount": "(absent)"}).props["request"]
    ladder = [{"request": without}, {"request": without}, UNKNOWN, {"request": UNKNOWN}]
    made = Resource("pulumi-python:dynamic/vertex:CustomJob", "job",
                    {**job, "options": {"ladder": ladder}}, "prod")  # fmt: skip
    [line] = POLICIES["job-dedicated-account"].violations(made)
    assert line.startswith("it names no account.")


TENSORBOARD: Final = "gcp:vertex/aiTensorboard:AiTensorboard"


@pytest.mark.parametrize(
    ("props", "lines"),
    [
        ({"region": "us-east1", "encryptionSpec": {"kmsKeyName": f"{KEYS}/us-east1/k"}}, []),
        ({"region": "us-west1", "encryptionSpec": {"kmsKeyName": f"{KEYS}/us-east1/k"}},
         [f"{KEYS}/us-east1/k is not in us-west1."]),
        ({"region": "us-west1"}, ["no key of your own encrypts it."]),
    ],
)  # fmt: skip
def test_a_tensorboard_is_encrypted_as_the_rest(props: dict[str, Any], lines: list[str]) -> None:
    found = POLICIES["own-key-where-required"].violations(
        Resource(TENSORBOARD, "x", props, "prod"), {"required": True}
    )
    assert [line.partition(" Hint: ")[0] for line in found] == lines


@pytest.mark.parametrize(
    ("resource", "change", "settings", "is_right"),
    [
        ("endpoint", {"labels.vt-public": "yes"}, None, False),
        ("endpoint", {"labels": UNKNOWN}, None, True),
        ("endpoint", {"labels": {}}, {"public": ["end*"]}, True),
        ("endpoint", {"labels": {}}, {"public": ["END*"]}, False),
        ("endpoint", {"labels": {}, "network": "projects/1/global/networks/x"}, None, True),
        ("private-endpoint", {"privateServiceConnectConfig": UNKNOWN}, None, True),
        ("private-endpoint", {}, None, True),
        ("account", {}, None, True),
    ],
)
def test_an_endpoint_is_private_or_said_to_be_public(
    resource: str, change: dict[str, Any], settings: dict[str, Any] | None, is_right: bool
) -> None:
    assert (said("endpoint-not-public", resource, change, settings) == []) == is_right


@pytest.mark.parametrize(
    ("image", "settings", "is_right"),
    [
        ("us-docker.pkg.dev/acme/x/serve:v1", None, False),
        ("us-docker.pkg.dev/acme/x/serve:v1", {"byTag": ["us-docker.pkg.dev/acme/x/*"]}, True),
        ("us-docker.pkg.dev/acme/x/serve:v1", {"byTag": ["us-docker.pkg.dev/acme/*"]}, False),
        (f"us-docker.pkg.dev/acme/x/serve@sha256:{'0' * 64}", None, True),
    ],
)
def test_a_serving_image_is_named_by_digest_or_by_a_tag_that_is_allowed(
    image: str, settings: dict[str, Any] | None, is_right: bool
) -> None:
    change = {"container": json.dumps({"imageUri": image})}
    lines = [] if is_right else [f"{image}."]
    assert said("model-image-by-digest", "model", change, settings) == lines
