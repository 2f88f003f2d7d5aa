"""The policies as a person configures and reports them: id, severity, settings, standards, page."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.policy import cases
from vertex_training.guardrails import jobs
from vertex_training.guardrails.policy import UNKNOWN, Policy, Resource, load

POLICIES: Final = {policy.id: policy for policy in load()}
ROWS: Final = {
    line.split("`")[1]: line
    for line in (cases.ROOT / "docs" / "policies.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
}
#: The stacks that a policy for production spares.
REHEARSALS: Final = {"notInStacks": ["local*", "dev*"]}
AGENT: Final = "serviceAccount:service-*@gcp-sa-aiplatform.iam.gserviceaccount.com"
GOOGLE: Final = [
    "*-docker.pkg.dev/vertex-ai/training/*",
    "*-docker.pkg.dev/vertex-ai-restricted/training/*",
]

SUBJECTS: Final = (
    "grants", "buckets", "registry", "retention", "jobs", "serving", "encryption", "network"
)  # fmt: skip
#: In the order of the page: subject, id, severity, settings, what CIS and Checkov call it.
TABLE: Final[list[tuple[str, str, str, dict[str, Any], str]]] = [
    ("grants", "no-basic-roles", "critical", {},
     "CIS GCP 1.5, CKV_GCP_117, CKV_GCP_115, CKV_GCP_116"),
    ("grants", "no-broad-project-roles", "high",
     {"allowed": {"roles/compute.networkAdmin": AGENT}},
     "CIS GCP 1.5, CIS GCP 1.6, CKV_GCP_41, CKV_GCP_42, CKV_GCP_49"),
    ("grants", "no-public-members", "critical", {}, "CIS GCP 5.1, CKV_GCP_28, CKV_GCP_101"),
    ("grants", "members-of-own-domains", "high", {"domains": []}, ""),
    ("grants", "no-service-account-keys", "high", {}, "CIS GCP 1.4"),
    ("buckets", "bucket-uniform-access", "high", {}, "CIS GCP 5.2, CKV_GCP_29"),
    ("buckets", "bucket-closed-to-public", "high", {}, "CIS GCP 5.1, CKV_GCP_114"),
    ("buckets", "bucket-versioned", "medium", {}, "CKV_GCP_78"),
    ("buckets", "bucket-regional", "medium", {}, ""),
    ("buckets", "data-protected", "high", {"unprotected": [], **REHEARSALS}, ""),
    ("registry", "registry-immutable-tags", "medium", REHEARSALS, ""),
    ("registry", "registry-cleanup", "low", {}, ""),
    ("registry", "registry-regional", "low", {}, ""),
    ("retention", "bucket-deleted-objects-restorable", "medium", {"minDays": 7, **REHEARSALS}, ""),
    ("retention", "bucket-old-versions-kept", "medium", {"minDays": 7, **REHEARSALS}, ""),
    ("retention", "bucket-objects-not-deleted-by-age", "high", {"minDays": 30, **REHEARSALS}, ""),
    ("retention", "bucket-retention-not-locked", "high", {}, ""),
    ("retention", "secret-protected", "high", REHEARSALS, ""),
    ("retention", "registry-keeps-images-in-use", "high",
     {"minVersions": 5, "minDays": 7, **REHEARSALS}, ""),
    ("jobs", "job-image-by-digest", "high", {"byTag": GOOGLE, **REHEARSALS}, ""),
    ("jobs", "job-dedicated-account", "high", {"accounts": []}, ""),
    ("jobs", "job-timeout-bounded", "medium", {"maxHours": 72}, ""),
    ("jobs", "job-large-gpus-spot-or-reserved", "medium",
     {"families": ["a2", "a3", "a4", "a4x"]}, ""),
    ("jobs", "job-no-secret-in-env", "critical", {}, ""),
    ("jobs", "job-in-a-network", "high", {"without": [], **REHEARSALS}, ""),
    ("serving", "model-image-by-digest", "high", {"byTag": [], **REHEARSALS}, ""),
    ("serving", "endpoint-not-public", "critical", {"public": [], **REHEARSALS}, ""),
    ("serving", "endpoint-always-served", "medium", {}, ""),
    ("encryption", "own-key-where-required", "high", {"required": False}, "CKV_GCP_84"),
    ("network", "no-ingress-from-anywhere", "critical", {},
     "CIS GCP 3.6, CIS GCP 3.7, CKV_GCP_2, CKV_GCP_3"),
]  # fmt: skip


def test_policies_are_these_in_the_order_of_the_page() -> None:
    assert list(ROWS) == [row[1] for row in TABLE]
    for subject in SUBJECTS:
        ids = [each.id for each in load() if each.subject == subject]
        assert ids == [row[1] for row in TABLE if row[0] == subject]


@pytest.mark.parametrize(
    ("id_", "severity", "settings", "standards"),
    [row[1:] for row in TABLE],
    ids=[row[1] for row in TABLE],
)
def test_a_policy_weighs_asks_and_is_called_elsewhere(
    id_: str, severity: str, settings: dict[str, Any], standards: str
) -> None:
    found = POLICIES[id_]
    assert (found.severity, dict(found.settings), ", ".join(found.standards)) == (
        severity, {"notInStacks": [], **settings}, standards,
    )  # fmt: skip


@pytest.mark.parametrize("found", load(), ids=lambda found: found.id)
def test_a_report_says_of_a_policy_what_its_page_says(found: Policy) -> None:
    said = " ".join(f"{found.what}<br>{found.why} ([docs]({found.url}))".split())
    assert said == ROWS[found.id].split(" | ")[2]


def job(type_: str, message: dict[str, Any]) -> Resource:
    return Resource(type_, "x", {"request": json.dumps(message)}, "prod")


JOB: Final = "pulumi-python:dynamic/vertex:CustomJob"
TUNING: Final = "pulumi-python:dynamic/vertex:HyperparameterTuningJob"
SCHEDULE: Final = "pulumi-python:dynamic/vertex:JobSchedule"


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (job(JOB, {"jobSpec": {"a": 1}}), {"a": 1}),
        (job(JOB, {"trialJobSpec": {"a": 1}}), {}),
        (job(TUNING, {"trialJobSpec": {"a": 1}}), {"a": 1}),
        (job(TUNING, {"jobSpec": {"a": 1}}), {}),
        (job(SCHEDULE, {"jobSpec": {"a": 1}}), {"a": 1}),
        (job(SCHEDULE, {"trialJobSpec": {"a": 1}}), {"a": 1}),
        (job(SCHEDULE, {"displayName": "x"}), {}),
        (job("gcp:storage/bucket:Bucket", {"jobSpec": {"a": 1}}), {}),
        (Resource(JOB, "x", {"request": UNKNOWN}, "prod"), {}),
        (Resource(JOB, "x", {}, "prod"), {}),
    ],
)
def test_what_runs_is_in_the_field_of_its_kind_of_job(
    resource: Resource, spec: dict[str, Any]
) -> None:
    assert jobs.job_spec(resource) == spec


def test_an_empty_pool_keeps_its_number_and_is_passed_over() -> None:
    spec = {"workerPoolSpecs": [{"replicaCount": 1}, {}, {"replicaCount": 2}]}
    assert list(jobs.pools(spec)) == [
        ("workerPoolSpecs[0]", {"replicaCount": 1}),
        ("workerPoolSpecs[2]", {"replicaCount": 2}),
    ]


OWN: Final = "is no account of stack prod in acme-ml-prod"
NOBODYS: Final = "is nobody's own"


@pytest.mark.parametrize(
    ("account", "said"),
    [
        ("trainer-prod@acme-ml-prod.iam.gserviceaccount.com", None),
        ("a-1-prod@acme-ml-prod.iam.gserviceaccount.com", None),
        ("trainer-dev@acme-ml-prod.iam.gserviceaccount.com", OWN),
        ("trainer-prod@acme-ml-test.iam.gserviceaccount.com", OWN),
        ("trainer-prod@acme-ml-prod.iam.gserviceaccount.com.example", OWN),
        ("trainer-prod@acme-ml-prod.iamXgserviceaccount.com", OWN),
        ("ci-prod@acme-ml-prod.iam.gserviceaccount.com", OWN),
        ("ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com", OWN),
        ("1-prod@acme-ml-prod.iam.gserviceaccount.com", OWN),
        ("-prod@acme-ml-prod.iam.gserviceaccount.com", OWN),
        ("109876543210-compute@developer.gserviceaccount.com", NOBODYS),
        ("acme-ml-prod@appspot.gserviceaccount.com", NOBODYS),
        ("109876543210@cloudservices.gserviceaccount.com", NOBODYS),
        ("service-109876543210@gcp-sa-aiplatform-cc.iam.gserviceaccount.com", NOBODYS),
        ("service-x@acme-ml-prod.iam.gserviceaccount.com", OWN),
    ],
)
def test_an_account_is_of_the_stack_and_of_its_project(account: str, said: str | None) -> None:
    declared = cases.changed("job", {"request.jobSpec.serviceAccount": account})
    made = Resource(declared.type, "job", declared.props, "prod")
    policy = POLICIES["job-dedicated-account"]
    hint = "Hint: serviceAccount: ${serviceAccounts.NAME}"
    assert policy.violations(made) == ([f"{account} {said}. {hint}"] if said else [])
    other = {"accounts": [account]}
    assert bool(policy.violations(made, other)) == (said == NOBODYS)


@pytest.mark.parametrize(
    ("policy", "resource", "change", "protect", "hint"),
    [
        ("bucket-uniform-access", "bucket", {"uniformBucketLevelAccess": False}, True,
         "set uniformBucketLevelAccess to true"),
        ("bucket-closed-to-public", "bucket", {"publicAccessPrevention": "inherited"}, True,
         "set publicAccessPrevention to enforced"),
        ("bucket-versioned", "bucket", {"versioning": {"enabled": False}}, True,
         "set versioning.enabled to true"),
        ("bucket-regional", "bucket", {"location": "US"}, True,
         "the region of the jobs, us-central1"),
        ("data-protected", "bucket", {"forceDestroy": True}, True,
         "remove forceDestroy from the stack file"),
        ("data-protected", "bucket", {}, False,
         "set protect: true on the bucket in the stack file"),
        ("job-image-by-digest", "job",
         {"request.jobSpec.workerPoolSpecs.0.containerSpec.imageUri": "x:1"}, True,
         "name the image by its digest in the stack file"),
        ("job-timeout-bounded", "job", {"request.jobSpec.scheduling": "(absent)"}, True,
         "scheduling.timeout of at most 72"),
        ("job-timeout-bounded", "job", {"request.jobSpec.scheduling.timeout": "360000s"}, True,
         "shorten or split it"),
        ("job-large-gpus-spot-or-reserved", "job",
         {"request.jobSpec.workerPoolSpecs.0.machineSpec": {"machineType": "a2-highgpu-1g"},
          "request.jobSpec.scheduling.strategy": None}, True,
         "scheduling.strategy SPOT or FLEX_START, or machineSpec.reservationAffinity"),
        ("job-no-secret-in-env", "job",
         {"request.jobSpec.workerPoolSpecs.0.containerSpec.args": ["--db-pass=hunter2"]}, True,
         "pass ${secrets.NAME} and read the value in the code"),
        ("job-in-a-network", "job", {"request.jobSpec.pscInterfaceConfig": "(absent)"}, True,
         "pscInterfaceConfig or network, from ${network...}"),
        ("bucket-deleted-objects-restorable", "bucket",
         {"softDeletePolicy.retentionDurationSeconds": 0}, True,
         "softDeleteDays: 7 in the stack file, or more"),
        ("bucket-old-versions-kept", "bucket", {"lifecycleRules.1.condition": {}}, True,
         "keepNoncurrentDays: 7 in the stack file, or more"),
        ("bucket-objects-not-deleted-by-age", "bucket",
         {"lifecycleRules.2.condition.age": 3}, True,
         "deleteAfterDays: 30 in the stack file, or more"),
        ("bucket-retention-not-locked", "bucket", {"retentionPolicy": {"isLocked": True}}, True,
         "if it is meant, policyLevels: {bucket-retention-not-locked: advisory}"),
        ("secret-protected", "secret", {}, False,
         "set protect: true on the secret in the stack file"),
        ("registry-immutable-tags", "repository", {"dockerConfig": "(absent)"}, True,
         "set registry.immutableTags: true in the stack file"),
        ("registry-cleanup", "repository", {"cleanupPolicies": "(absent)"}, True,
         "add cleanupPolicies"),
        ("registry-cleanup", "repository", {"cleanupPolicyDryRun": True}, True,
         "set cleanupPolicyDryRun to false"),
        ("registry-regional", "repository", {"location": "us"}, True,
         "the region of the jobs, us-central1"),
        ("registry-keeps-images-in-use", "repository",
         {"cleanupPolicies.0.condition.tagState": "ANY"}, True, "tagState: UNTAGGED"),
        ("registry-keeps-images-in-use", "repository",
         {"cleanupPolicies.0.condition.olderThan": "1d"}, True,
         "deleteUntaggedAfterDays: 7, or more"),
        ("registry-keeps-images-in-use", "repository",
         {"cleanupPolicies.1.mostRecentVersions.keepCount": 1}, True, "keepVersions: 5, or more"),
        ("model-image-by-digest", "model", {"container": '{"imageUri": "x:1"}'}, True,
         "name the image by its digest, as ${images.NAME} does"),
        ("endpoint-not-public", "endpoint", {"labels": "(absent)"}, True,
         "Private Service Connect as the stack's network mode, or public: true at this endpoint "
         "in the stack file"),
        ("endpoint-always-served", "traffic", {"deployed.run 4.min": 0}, True,
         "replicas: {min: 1, …}"),
        ("own-key-where-required", "bucket", {"location": "us-east1"}, True,
         "use a key of that location"),
        ("no-ingress-from-anywhere", "firewall", {"sourceRanges": ["0.0.0.0/0"]}, True,
         "name the ranges that need it"),
        ("no-basic-roles", "project-grant", {"role": "roles/editor"}, True,
         "give a role of the one service it needs"),
        ("no-public-members", "bucket-grant", {"member": "allUsers"}, True,
         "name the group or account that needs it"),
    ],
)  # fmt: skip
def test_a_violation_ends_with_what_to_do(
    policy: str, resource: str, change: dict[str, Any], protect: bool, hint: str
) -> None:
    declared = cases.changed(resource, change, protect=protect)
    made = Resource(declared.type, "x", declared.props, "prod", declared.protect)
    [line] = POLICIES[policy].violations(made)
    assert line.partition(" Hint: ")[2] == hint


@pytest.mark.parametrize(
    ("type_", "props", "kind"),
    [
        ("gcp:serviceaccount/key:Key", {}, "a key"),
        ("gcp:storage/hmacKey:HmacKey", {}, "an HMAC key"),
        ("gcp:projects/apiKey:ApiKey", {"serviceAccountEmail": "a@b"}, "an API key"),
        ("gcp:projects/apiKey:ApiKey", {"serviceAccountEmail": UNKNOWN}, "an API key"),
        ("gcp:projects/apiKey:ApiKey", {}, ""),
        ("gcp:serviceaccount/account:Account", {"serviceAccountEmail": "a@b"}, ""),
    ],
)
def test_no_key_of_an_account_is_made(type_: str, props: dict[str, Any], kind: str) -> None:
    hint = "Hint: jobs run as their account and need none; for CI use workload identity federation"
    lines = [f"{kind} of a service account is made. {hint}"] if kind else []
    made = Resource(type_, "x", props, "prod")
    assert POLICIES["no-service-account-keys"].violations(made) == lines
