"""The program under Pulumi's mocks: who may do what on what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bootstrap.recorder import grants, registered
from vertex_training.foundation import conditions, config, permissions

PREVIEW = "serviceAccount:ci-preview-dev@acme-ml-dev.iam.gserviceaccount.com"
PLAN = "serviceAccount:ci-plan-prod@acme-ml-prod.iam.gserviceaccount.com"
DEPLOY = "serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com"
#: Granted on the datasets alone that the environment lists, of which prod and dev have none.
OF_DATASETS = {"bigquery.datasets.setIamPolicy", "bigquery.datasets.update"}
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


PROD = config.parse(
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


def test_each_account_gets_exactly_these_grants(prod: dict[str, dict[str, Any]]) -> None:
    project, state = "acme-ml-prod", "acme-ml-prod-pulumi-state"
    pool = "projects/109876543210/locations/global/workloadIdentityPools/github-prod"
    role = f"principalSet://iam.googleapis.com/{pool}/attribute.ci_role"
    when = {
        part.name: part.condition for part in conditions.deploy_roles(PROD, permissions.needs())
    }
    objects = (
        "resource.name.startsWith('projects/_/buckets/acme-ml-prod-staging-prod/objects/') || "
        "resource.name.startsWith('projects/_/buckets/acme-ml-prod-data-prod/objects/')"
    )
    user = "roles/iam.workloadIdentityUser"
    both = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    assert grants(prod) == {
        (PLAN, "roles/storage.objectViewer", state, ""),
        (PLAN, "roles/cloudkms.cryptoKeyDecrypter", "state-key-id", ""),
        (PLAN, f"projects/{project}/roles/training_plan_prod", project, ""),
        (PLAN, "roles/storage.objectViewer", project, objects),
        (PLAN, "roles/orgpolicy.policyViewer", project, ""),
        (DEPLOY, "roles/orgpolicy.policyViewer", project, ""),
        (DEPLOY, "roles/storage.objectUser", state, ""),
        (DEPLOY, both, "state-key-id", ""),
        *(
            (DEPLOY, f"projects/{project}/roles/training_{name}_prod", project, condition)
            for name, condition in when.items()
        ),
        (f"{role}/plan", user, PLAN.partition(":")[2], ""),
        (f"{role}/deploy", user, DEPLOY.partition(":")[2], ""),
    }


def test_preview_reads_settings_and_state_of_its_environment_and_no_other_object(
    dev: dict[str, dict[str, Any]],
) -> None:
    pool = "projects/210987654321/locations/global/workloadIdentityPools/github-dev"
    role = f"principalSet://iam.googleapis.com/{pool}/attribute.ci_role"
    account = PREVIEW.partition(":")[2]
    assert {grant for grant in grants(dev) if PREVIEW in grant or account in grant} == {
        (PREVIEW, "roles/storage.objectViewer", "acme-ml-dev-pulumi-state", ""),
        (PREVIEW, "roles/cloudkms.cryptoKeyDecrypter", "state-key-id", ""),
        (PREVIEW, "projects/acme-ml-dev/roles/training_preview_dev", "acme-ml-dev", ""),
        (f"{role}/preview", "roles/iam.workloadIdentityUser", account, ""),
    }
    permitted = dev["preview-preview-role"]["permissions"]
    assert permitted == permissions.of_plan(permissions.needs())
    assert not [permission for permission in permitted if permission.startswith("storage.objects.")]


def test_where_pull_requests_are_not_allowed_they_have_no_account(
    prod: dict[str, dict[str, Any]], dev: dict[str, dict[str, Any]]
) -> None:
    assert "preview-account" in dev
    assert not [name for name in prod if name.startswith("preview")]
    assert "preview" not in prod["github-provider"]["attributeMapping"]["attribute.ci_role"]
    assert "pull_request" not in str(prod["github-provider"])


def test_the_roles_hold_what_was_derived(prod: dict[str, dict[str, Any]]) -> None:
    types = permissions.needs()
    assert prod["plan-plan-role"]["permissions"] == permissions.of_plan(types)
    held: list[str] = []
    for part in conditions.deploy_roles(PROD, types):
        assert prod[f"deploy-{part.name}-role"]["permissions"] == list(part.permissions)
        held += part.permissions
    derived = {*permissions.of_deploy(types), *permissions.of_grant(types)}
    assert sorted(held) == sorted(derived - OF_DATASETS)


def held_by(resources: dict[str, dict[str, Any]], account: str) -> set[str]:
    """Permissions of the custom roles that an account has."""
    roles = (name for name in resources if name.startswith(account) and name.endswith("-role"))
    return {each for name in roles for each in resources[name]["permissions"]}


@pytest.mark.parametrize("stack", ["prod", "dev"])
def test_each_call_of_the_plugin_is_covered_by_the_roles_that_bootstrap_grants(
    stack: str, prod: dict[str, dict[str, Any]], dev: dict[str, dict[str, Any]]
) -> None:
    resources = {"prod": prod, "dev": dev}[stack]
    deploy, plan = held_by(resources, "deploy"), held_by(resources, "plan")
    for need in permissions.needs().values():
        if need.where != "project":
            continue
        for method, asked in (need.read | need.content | need.write | need.grant).items():
            assert set(asked) - OF_DATASETS <= deploy, f"{need.type}: {method}"
        for method, asked in need.read.items():
            assert set(asked) <= plan, f"{need.type}: {method}"


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


def test_state_is_closed_versioned_and_can_be_brought_back(
    prod: dict[str, dict[str, Any]],
) -> None:
    bucket = prod["state-bucket"]
    assert bucket["uniformBucketLevelAccess"] is True
    assert bucket["publicAccessPrevention"] == "enforced"
    assert bucket["versioning"] == {"enabled": True}
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 30 * 24 * 3600}
    assert bucket["forceDestroy"] is False
    assert prod["state-key"]["rotationPeriod"] == "7776000s"


def test_tokens_of_one_repository_are_taken(prod: dict[str, dict[str, Any]]) -> None:
    provider = prod["github-provider"]
    assert provider["oidc"]["issuerUri"] == "https://token.actions.githubusercontent.com"
    assert "assertion.repository_owner_id == '65'" in provider["attributeCondition"]
    assert "assertion.repository_id == '74'" in provider["attributeCondition"]
    mapped = provider["attributeMapping"]
    assert mapped["google.subject"] == "assertion.repository_id + ':' + assertion.run_id"
    claims = ("repository_id", "repository_owner_id", "ref", "event_name", "job_workflow_ref")
    assert {
        f"attribute.{claim}": f"assertion.{claim}" for claim in claims
    }.items() <= mapped.items()
    assert mapped.keys() >= {"attribute.environment", "attribute.ci_role"}


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


def test_without_the_right_to_deny_there_is_no_policy_and_no_tag() -> None:
    assert not [name for name in registered("prod", denyPolicy=False) if "denial" in name]


def test_what_is_there_keeps_its_name_since_another_name_is_another_resource(
    dev: dict[str, dict[str, Any]],
) -> None:
    of_others = ("Service", "IAMMember", "IAMCustomRole", "TagBinding")
    kept = {
        name: each["type"] for name, each in dev.items() if not each["type"].endswith(of_others)
    }
    assert {name for name, kind in kept.items() if kind.startswith("gcp:")} == {
        *("state-bucket", "state-keys", "state-key", "github-pool", "github-provider"),
        *("plan-account", "deploy-account", "preview-account"),
        *("denial-tag-key", "denial-tag-value", "denial-policy"),
    }


def test_old_versions_of_the_state_and_uploads_that_stopped_are_removed(
    dev: dict[str, dict[str, Any]],
) -> None:
    aborted, old = dev["state-bucket"]["lifecycleRules"]
    assert aborted["action"]["type"] == "AbortIncompleteMultipartUpload"
    assert old["action"]["type"] == "Delete"
    assert old["condition"]["withState"] == "ARCHIVED"
