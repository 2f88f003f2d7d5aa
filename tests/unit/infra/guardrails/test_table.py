"""The policies as a person configures and reports them: id, severity, settings, standards, page."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.policy import cases
from vertex_training.guardrails.policy import Policy, Resource, load

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
