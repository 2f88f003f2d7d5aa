"""The program under Pulumi's mocks: who may do what on what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bootstrap.recorder import grants, registered
from vertex_training.foundation import settings

PLAN = "serviceAccount:ci-plan-prod@acme-ml-prod.iam.gserviceaccount.com"
#: Permissions of the predefined roles that are given here.
#: https://github.com/iann0036/iam-dataset gcp/roles at 49a20a56 (objectViewer), 0f631ebd
#: (objectUser), 1818bc70 (Cloud KMS): what `gcloud iam roles describe` printed then.
PREDEFINED = {
    "roles/storage.objectViewer": {
        "resourcemanager.projects.get",
        "resourcemanager.projects.list",
        "storage.folders.get",
        "storage.folders.list",
        "storage.managedFolders.get",
        "storage.managedFolders.list",
        "storage.objects.get",
        "storage.objects.list",
    },
    # https://docs.cloud.google.com/iam/docs/roles-permissions/orgpolicy
    "roles/orgpolicy.policyViewer": {
        "orgpolicy.constraints.list",
        "orgpolicy.customConstraints.get",
        "orgpolicy.customConstraints.list",
        "orgpolicy.policies.list",
        "orgpolicy.policy.get",
    },
    "roles/cloudkms.cryptoKeyDecrypter": {
        "cloudkms.cryptoKeyVersions.useToDecrypt",
        "cloudkms.locations.get",
        "cloudkms.locations.list",
        "resourcemanager.projects.get",
    },
}


PROD = settings.parse(
    {
        "stack": "prod",
        "project": "acme-ml-prod",
        "region": "us-central1",
        "projectNumber": "109876543210",
        "github": {
            "owner": "octo-org",
            "ownerId": "65",
            "repository": "octo-repo",
            "repositoryId": "74",
        },
    }
)


@pytest.fixture(scope="module")
def prod() -> dict[str, dict[str, Any]]:
    return registered("prod")


@pytest.fixture(scope="module")
def dev() -> dict[str, dict[str, Any]]:
    return registered("dev")


def test_where_pull_requests_are_not_allowed_they_have_no_account(
    prod: dict[str, dict[str, Any]], dev: dict[str, dict[str, Any]]
) -> None:
    assert "preview-account" in dev
    assert not [name for name in prod if name.startswith("preview")]
    assert "preview" not in prod["github-provider"]["attributeMapping"]["attribute.ci_role"]
    assert "pull_request" not in str(prod["github-provider"])


def test_nothing_that_plan_has_writes_submits_or_acts_as_anyone(
    prod: dict[str, dict[str, Any]],
) -> None:
    held: set[str] = set(prod["plan-plan-role"]["permissions"])
    for member, role, _, _ in grants(prod):
        if member == PLAN and role.startswith("roles/"):
            held |= PREDEFINED[role]
    assert {permission.rpartition(".")[2] for permission in held} == {
        "get",
        "list",
        "getIamPolicy",
        "read",  # of budgets
        "useToDecrypt",
    }


def test_the_deny_policy_names_all_accounts_and_the_tag_hangs_on_each(
    dev: dict[str, dict[str, Any]], prod: dict[str, dict[str, Any]]
) -> None:
    for stack, names in ((dev, {"plan", "deploy", "preview"}), (prod, {"plan", "deploy"})):
        [policy] = [r for r in stack.values() if r["type"] == "gcp:iam/denyPolicy:DenyPolicy"]
        for rule in policy["rules"]:
            denied = rule["denyRule"]["deniedPrincipals"]
            assert {name.rpartition("/")[2].split("-")[1] for name in denied} == names
        assert {key for key in stack if key.startswith("denial-of-")} == {
            f"denial-of-{name}" for name in names
        }
