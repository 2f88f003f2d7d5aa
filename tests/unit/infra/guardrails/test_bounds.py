"""Each policy at its bounds: what is just allowed, and every word of what is just refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.policy import cases
from vertex_training.guardrails.jobs import job_spec
from vertex_training.guardrails.policy import UNKNOWN, Resource, load

POLICIES: Final = {policy.id: policy for policy in load()}
TRAINER: Final = "serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
MEMBER: Final = "iAMMember:IAMMember"
DELETE: Final = {"type": "Delete"}
IMAGE: Final = "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/pretrain:v1"
KEYS: Final = "projects/acme-kms/locations"
POOL: Final = "request.jobSpec.workerPoolSpecs.0"
FIREWALL: Final = "Hint: name the ranges that need it"
PUBLIC: Final = "Hint: name the group or account that needs it"


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


def test_what_is_right_violates_no_policy() -> None:
    found = {
        (declared.name, policy.id): policy.violations(
            Resource(declared.type, declared.name, declared.props, "prod", declared.protect),
            cases.SETTINGS.get(policy.id),
        )
        for declared in cases.right()
        for policy in POLICIES.values()
    }
    assert {each: lines for each, lines in found.items() if lines} == {}
    assert len(found) > 30 * 10  # policies, resources


def policy_data(*members: str, role: str) -> dict[str, str]:
    return {"policyData": json.dumps({"bindings": [{"role": role, "members": list(members)}]})}


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"policyData": "(absent)"}, []),
        ({"policyData": "{}"}, []),
        ({"policyData": '{"bindings": null}'}, []),
        (policy_data("user:a@b.example", "user:c@d.example", role="roles/owner"), [
            "user:a@b.example gets roles/owner.", "user:c@d.example gets roles/owner."]),
    ],
)  # fmt: skip
def test_every_member_of_a_whole_policy_is_looked_at(
    change: dict[str, Any], lines: list[str]
) -> None:
    assert said("no-basic-roles", "project-policy", change) == lines


@pytest.mark.parametrize("type_", ["projects/", "folder/", "organizations/"])
@pytest.mark.parametrize(
    ("role", "advice"),
    [
        ("roles/storage.admin", "give it on the bucket"),
        ("roles/secretmanager.viewer", "give it on the secret"),
        ("roles/artifactregistry.reader", "give it on the repository"),
        ("roles/cloudkms.viewer", "give it on the key"),
        ("roles/iam.serviceAccountTokenCreator", "give it on the one account"),
        ("roles/iam.workloadIdentityUser", "give it on the one account"),
        ("roles/iam.securityAdmin", "give a role that only does the work"),
        ("projects/acme-ml-prod/roles/myADMIN", "give a role that only does the work"),
    ],
)
def test_a_role_that_fits_something_narrower_is_refused_on_a_project_or_above(
    type_: str, role: str, advice: str
) -> None:
    declared = cases.changed("project-grant", {"role": role}, type=f"gcp:{type_}{MEMBER}")
    made = Resource(declared.type, "x", declared.props, "prod")
    assert POLICIES["no-broad-project-roles"].violations(made) == [
        f"{TRAINER} gets {role} on everything. Hint: {advice}"
    ]


@pytest.mark.parametrize(
    ("role", "member", "settings", "lines"),
    [
        ("roles/compute.networkAdmin", UNKNOWN, None, []),
        ("roles/storage.objectViewer", UNKNOWN, None,
         ["(known later) gets roles/storage.objectViewer on everything."]),
        ("roles/storage.objectViewer", "group:a@b.example",
         {"allowed": {"roles/storage.objectViewer": "group:*@b.example"}}, []),
        ("roles/storage.objectViewer", "group:a@c.example",
         {"allowed": {"roles/storage.objectViewer": "group:*@b.example"}},
         ["group:a@c.example gets roles/storage.objectViewer on everything."]),
        ("roles/logging.logWriter", "group:a@b.example", None, []),
    ],
)  # fmt: skip
def test_a_documented_need_is_allowed_for_its_members_alone(
    role: str, member: object, settings: dict[str, Any] | None, lines: list[str]
) -> None:
    change = {"role": role, "member": member}
    assert said("no-broad-project-roles", "project-grant", change, settings) == lines


@pytest.mark.parametrize(
    ("resource", "type_", "change", "lines"),
    [
        ("bucket-acl", "BucketACL", {"predefinedAcl": "authenticatedRead"},
         ["allAuthenticatedUsers gets roles/storage.legacyBucketReader."]),
        ("bucket-acl", "ObjectACL", {"predefinedAcl": "publicReadWrite"},
         ["allUsers gets WRITER."]),
        ("bucket-acl", "DefaultObjectACL",
         {"roleEntities": ["OWNER:user-a", "READER:allAuthenticatedUsers"]},
         ["allAuthenticatedUsers gets roles/storage.legacyObjectReader."]),
        ("bucket-acl", "BucketACL", {"predefinedAcl": "projectPrivate"}, []),
        ("object-access", "BucketAccessControl", {"entity": "allAuthenticatedUsers"},
         ["allAuthenticatedUsers gets roles/storage.legacyBucketReader."]),
        ("object-access", "ObjectAccessControl", {"entity": "allUsers"},
         ["allUsers gets roles/storage.legacyObjectReader."]),
    ],
)  # fmt: skip
def test_an_acl_of_any_kind_opens_nothing_to_everybody(
    resource: str, type_: str, change: dict[str, Any], lines: list[str]
) -> None:
    kind = f"gcp:storage/{type_[0].lower()}{type_[1:]}:{type_}"
    assert said("no-public-members", resource, change, type=kind) == lines


def test_whoever_owns_an_acl_that_is_not_one_of_access_is_nobodys_business() -> None:
    other = Resource("gcp:storage/notification:Notification", "x", {"entity": "allUsers"}, "prod")
    assert POLICIES["no-public-members"].violations(other) == []


@pytest.mark.parametrize(
    ("member", "domains", "lines"),
    [
        ("user:a@gmail.com", [], []),
        ("user:a@example.com", ["example.com"], []),
        (UNKNOWN, ["example.com"], []),
        ("allUsers", ["example.com"], []),
        ("user:a@gmail.com", ["example.com"],
         ["user:a@gmail.com gets roles/storage.objectViewer. Hint: add gmail.com to the domains"]),
        ("projectOwner:acme", ["example.com"], [
            "projectOwner:acme gets roles/storage.objectViewer. "
            "Hint: write it as IAM's page has it",
        ]),
    ],
)  # fmt: skip
def test_members_are_of_the_domains_that_are_given(
    member: object, domains: list[str], lines: list[str]
) -> None:
    declared = cases.changed("bucket-grant", {"member": member})
    made = Resource(declared.type, "x", declared.props, "prod")
    given = {"domains": domains}
    assert POLICIES["members-of-own-domains"].violations(made, given) == lines


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


LOCAL: Final = {"project": "local-project"}


@pytest.mark.parametrize(
    ("change", "settings", "lines"),
    [
        ({}, None, ["is not protected."]),
        ({"name": "acme-ml-prod-staging-prod"}, None, []),
        ({"name": "acme-ml-prod-control-prod"}, None, []),
        ({"name": "acme-ml-prod-staging-dev"}, None, ["is not protected."]),
        ({"name": UNKNOWN}, None, []),
        ({"project": UNKNOWN}, None, []),
        ({}, {"unprotected": ["acme-ml-prod-data-prod"]}, []),
        ({"forceDestroy": True}, {"unprotected": ["acme-ml-prod-data-prod"]},
         ["may be deleted with all objects."]),
        ({"forceDestroy": True}, None,
         ["may be deleted with all objects.", "is not protected."]),
        ({"forceDestroy": True, "name": "acme-ml-prod-staging-prod"}, None,
         ["may be deleted with all objects."]),
        ({"forceDestroy": True, "name": "local-project-staging-prod", **LOCAL}, None, []),
        ({"forceDestroy": True, "name": "local-project-data-prod", **LOCAL}, None,
         ["may be deleted with all objects.", "is not protected."]),
    ],
)  # fmt: skip
def test_data_is_protected_but_for_the_programs_own_buckets(
    change: dict[str, Any], settings: dict[str, Any] | None, lines: list[str]
) -> None:
    assert said("data-protected", "bucket", change, settings, protect=False) == lines


def test_what_is_no_bucket_is_not_protected_as_one() -> None:
    assert said("data-protected", "account", {"forceDestroy": True}, protect=False) == []


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"cleanupPolicies.0.condition.olderThan": "604799s"},
         ["its clean-up deletes images after 6.99999 days."]),
        ({"cleanupPolicies.0.condition": {"tagState": "UNTAGGED"}},
         ["its clean-up deletes images after 0 days."]),
        ({"cleanupPolicies.0.condition": {"tagState": "TAGGED", "olderThan": "604800s"}},
         ["its clean-up deletes images with a tag."]),
        ({"cleanupPolicies.0.condition": {"olderThan": "604800s"}},
         ["its clean-up deletes images with a tag."]),
        ({"cleanupPolicies.1.mostRecentVersions.keepCount": 4},
         ["its clean-up keeps 4 versions of an image."]),
        ({"cleanupPolicies.1.mostRecentVersions": "(absent)"},
         ["its clean-up keeps 0 versions of an image."]),
        ({"cleanupPolicies.1.mostRecentVersions.keepCount": UNKNOWN}, []),
        ({"cleanupPolicies.1": UNKNOWN}, []),
        ({"cleanupPolicies.0.condition.olderThan": "7d"}, []),
        ({"cleanupPolicies.0.action": "KEEP",
          "cleanupPolicies.1.mostRecentVersions.keepCount": 1}, []),
    ],
)  # fmt: skip
def test_a_clean_up_of_images_at_its_bounds(change: dict[str, Any], lines: list[str]) -> None:
    assert said("registry-keeps-images-in-use", "repository", change) == lines


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


def test_the_largest_count_of_versions_is_what_is_kept() -> None:
    rules = cases.changed("repository", {}).props["cleanupPolicies"]
    more = {"id": "few", "action": "KEEP", "mostRecentVersions": {"keepCount": 1}}
    change = {"cleanupPolicies": [*rules, more]}
    assert said("registry-keeps-images-in-use", "repository", change) == []
    fewer = {"minVersions": 6, "minDays": 8}
    assert said("registry-keeps-images-in-use", "repository", {}, fewer) == [
        "its clean-up deletes images after 7 days.",
        "its clean-up keeps 5 versions of an image.",
    ]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"cleanupPolicies.0.action": "KEEP"}, ["no DELETE rule cleans it up."]),
        ({"cleanupPolicies": []}, ["no DELETE and no KEEP rule cleans it up."]),
        ({"cleanupPolicies": UNKNOWN}, []),
        ({"cleanupPolicies.0.action": UNKNOWN}, []),
        ({"cleanupPolicyDryRun": False}, []),
        ({"cleanupPolicies": [], "cleanupPolicyDryRun": True},
         ["no DELETE and no KEEP rule cleans it up."]),
    ],
)  # fmt: skip
def test_a_repository_deletes_and_keeps(change: dict[str, Any], lines: list[str]) -> None:
    assert said("registry-cleanup", "repository", change) == lines


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, False),
        ({"format": "(absent)"}, False),
        ({"format": "PYTHON"}, True),
        ({"format": UNKNOWN}, True),
        ({"dockerConfig": UNKNOWN}, True),
        ({"dockerConfig": {"immutableTags": True}}, True),
    ],
)
def test_tags_of_images_cannot_be_moved_and_other_packages_have_none(
    change: dict[str, Any], is_right: bool
) -> None:
    lines = [] if is_right else ["tags can be moved."]
    change = {"dockerConfig": {"immutableTags": False}, **change}
    assert said("registry-immutable-tags", "repository", change) == lines
    assert said("registry-immutable-tags", "account", {}) == []


def test_a_repository_without_a_location_is_in_its_providers_region() -> None:
    assert said("registry-regional", "repository", {"location": "(absent)"}) == []
    assert said("registry-regional", "repository", {"location": "europe"}) == [
        "location europe is not one region."
    ]


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


@pytest.mark.parametrize(
    ("machine", "affinity", "strategy", "is_right"),
    [
        *((f"{family}-highgpu-8g", None, None, False) for family in ("a2", "a3", "a4", "a4x")),
        ("a2-highgpu-1g", None, "STANDARD", False),
        ("a2-highgpu-1g", None, "SPOT", True),
        ("a2-highgpu-1g", None, "FLEX_START", True),
        ("a2-highgpu-1g", "SPECIFIC_RESERVATION", None, True),
        ("a2-highgpu-1g", "ANY_RESERVATION", None, True),
        ("a2-highgpu-1g", "NO_RESERVATION", None, False),
        ("g2-standard-4", None, None, True),
        ("n1-highmem-2", None, None, True),
    ],
)
def test_large_gpus_are_spot_flexible_or_reserved(
    machine: str, affinity: str | None, strategy: str | None, is_right: bool
) -> None:
    spec: dict[str, Any] = {"machineType": machine}
    if affinity:
        spec["reservationAffinity"] = {"reservationAffinityType": affinity}
    change = {f"{POOL}.machineSpec": spec, "request.jobSpec.scheduling.strategy": strategy}
    lines = [] if is_right else [f"workerPoolSpecs[0]: {machine} on demand."]
    assert said("job-large-gpus-spot-or-reserved", "job", change) == lines
    other = {"families": ["g2"]}
    found = said("job-large-gpus-spot-or-reserved", "job", change, other)
    assert bool(found) == machine.startswith("g2")


def test_every_rung_of_a_ladder_is_looked_at_and_the_same_thing_said_once() -> None:
    job = cases.changed("job", {}).props
    without = cases.changed("job", {"request.jobSpec.serviceAccount": "(absent)"}).props["request"]
    ladder = [{"request": without}, {"request": without}, UNKNOWN, {"request": UNKNOWN}]
    made = Resource("pulumi-python:dynamic/vertex:CustomJob", "job",
                    {**job, "options": {"ladder": ladder}}, "prod")  # fmt: skip
    [line] = POLICIES["job-dedicated-account"].violations(made)
    assert line.startswith("it names no account.")


TENSORBOARD: Final = "gcp:vertex/aiTensorboard:AiTensorboard"
AUTO: Final = {"auto": {"customerManagedEncryption": {"kmsKeyName": f"{KEYS}/global/k"}}}


def replica(location: str, key: str | None) -> dict[str, Any]:
    encryption = {"customerManagedEncryption": {"kmsKeyName": key}} if key else {}
    return {"location": location, **encryption}


@pytest.mark.parametrize(
    ("resource", "change", "lines"),
    [
        ("bucket", {"location": "(absent)"}, []),
        ("bucket", {"location": "US-EAST1"},
         [f"{KEYS}/us-central1/keyRings/ml/cryptoKeys/training is not in us-east1."]),
        ("bucket", {"encryption": UNKNOWN}, []),
        ("repository", {"location": "us-east1"},
         [f"{KEYS}/us-central1/keyRings/ml/cryptoKeys/training is not in us-east1."]),
        ("secret", {"replication": AUTO}, []),
        ("secret", {"replication": {"auto": {"customerManagedEncryption": {
            "kmsKeyName": f"{KEYS}/us-central1/k"}}}}, [f"{KEYS}/us-central1/k is not in global."]),
        ("secret", {"replication": {"userManaged": {"replicas": [
            replica("us-east1", f"{KEYS}/us-east1/k"), replica("us-west1", f"{KEYS}/us-east1/k"),
            replica("us-west2", None)]}}},
         [f"{KEYS}/us-east1/k is not in us-west1.", "no key of your own encrypts it."]),
        ("secret", {"replication": {"userManaged": {"replicas": UNKNOWN}}}, []),
        ("secret", {"replication": {"userManaged": {"replicas": [
            {"location": "us-east1", "customerManagedEncryption": UNKNOWN},
            replica("us-west2", None)]}}}, ["no key of your own encrypts it."]),
        # The region with a digit more is another one.
        ("bucket", {"location": "EUROPE-WEST1",
                    "encryption.defaultKmsKeyName": f"{KEYS}/europe-west12/k"},
         [f"{KEYS}/europe-west12/k is not in europe-west1."]),
        ("job", {"request": UNKNOWN}, []),
        ("schedule", {"submission.region": "us-east1"},
         [f"{KEYS}/us-central1/keyRings/ml/cryptoKeys/training is not in us-east1."]),
        ("account", {}, []),
    ],
)  # fmt: skip
def test_a_key_is_where_its_data_is(
    resource: str, change: dict[str, Any], lines: list[str]
) -> None:
    declared = cases.changed(resource, {} if "request" in change else change)
    props = {**declared.props, **change} if "request" in change else declared.props
    made = Resource(declared.type, "x", props, "prod")
    found = POLICIES["own-key-where-required"].violations(made, {"required": True})
    assert [line.partition(" Hint: ")[0] for line in found] == lines


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


def test_a_key_that_is_not_required_may_be_absent_but_not_elsewhere() -> None:
    assert said("own-key-where-required", "repository", {"kmsKeyName": "(absent)"}) == []
    assert said("own-key-where-required", "repository", {"kmsKeyName": f"{KEYS}/eu/k"}) == [
        f"{KEYS}/eu/k is not in us-central1."
    ]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"direction": "EGRESS"}, []),
        ({"disabled": True}, []),
        ({"allows": []}, []),
        ({"allows": "(absent)", "denies": [{"protocol": "all"}]}, []),
        ({}, ["0.0.0.0/0 may reach it (tcp)."]),
        # Google's provider refuses it, one of another version or language may not:
        ({"sourceRanges": "(absent)"}, ["0.0.0.0/0, ::/0 may reach it (tcp)."]),
        ({"disabled": False, "direction": "(absent)"}, ["0.0.0.0/0 may reach it (tcp)."]),
        ({"allows": UNKNOWN}, ["0.0.0.0/0 may reach it (protocols known later)."]),
        ({"sourceRanges": ["0.0.0.0/0", "10.0.0.0/8", "::/0"],
          "allows": [{"protocol": "tcp"}, {"protocol": "icmp"}]},
         ["0.0.0.0/0, ::/0 may reach it (tcp, icmp)."]),
    ],
)  # fmt: skip
def test_a_firewall_lets_nobody_in_from_anywhere(change: dict[str, Any], lines: list[str]) -> None:
    change = {"sourceRanges": ["0.0.0.0/0"], **change}
    assert said("no-ingress-from-anywhere", "firewall", change) == lines


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


@pytest.mark.parametrize("policy", ["model-image-by-digest", "endpoint-always-served"])
def test_other_types_may_have_inputs_of_the_same_name(policy: str) -> None:
    props = {"container": "no JSON", "deployed": {"run 1": {"min": 0}}}
    assert POLICIES[policy].violations(Resource("gcp:x/y:Z", "x", props, "prod")) == []


@pytest.mark.parametrize(("least", "lines"), [
    (0, ["run 4 has 0 replicas at least."]),
    (0.5, ["run 4 has 0.5 replicas at least."]),
    (1, []),
    (2, []),
    (UNKNOWN, []),
    (None, []),
])  # fmt: skip
def test_a_deployed_version_has_a_replica(least: object, lines: list[str]) -> None:
    assert said("endpoint-always-served", "traffic", {"deployed.run 4.min": least}) == lines


@pytest.mark.parametrize(
    ("type_", "props", "spec"),
    [
        ("gcp:x/y:Z", {"request": "no JSON"}, {}),
        ("gcp:x/y:Z", {"request": '{"jobSpec": {"network": "n"}}'}, {}),
        (cases.changed("job", {}).type, {"request": '{"jobSpec": {"network": "n"}}'},
         {"network": "n"}),
        (cases.changed("job", {}).type, {"request": UNKNOWN}, {}),
        (cases.changed("job", {}).type, {}, {}),
    ],
)  # fmt: skip
def test_only_jobs_have_a_specification(
    type_: str, props: Mapping[str, Any], spec: Mapping[str, Any]
) -> None:
    assert job_spec(Resource(type_, "x", props, "prod")) == spec
