"""Every resource of an environment, with all of its inputs, and the words of conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.bootstrap.recorder import registered, unique_id
from tests.unit.bootstrap.test_program import PROD
from vertex_training.errors import ConfigError
from vertex_training.foundation import config

DEFAULT: Final = "109876543210-compute@developer.gserviceaccount.com"
PROJECT: Final = "acme-ml-prod"
LABELS: Final = {
    "managed-by": "pulumi", "stack": "prod", "cost-center": "ml", "team": "ml-platform"
}  # fmt: skip
POOL: Final = "projects/109876543210/locations/global/workloadIdentityPools/github-prod"
ADVANCER: Final = f"principalSet://iam.googleapis.com/{POOL}/attribute.ci_role/advance"
NEEDS: Final = "What the training stack's resource types need; docs/bootstrap.md"


@pytest.fixture(scope="module")
def prod() -> dict[str, dict[str, Any]]:
    """Everything that an environment can have."""
    given = {"schedules": True, "pullRequests": True, "protectedAccounts": [DEFAULT]}
    return registered("prod", **given)


def of_type(resources: dict[str, dict[str, Any]], ending: str) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in resources.items() if each["type"].endswith(ending)}


def test_the_apis_that_it_needs_stay_on_when_it_is_destroyed(
    prod: dict[str, dict[str, Any]],
) -> None:
    names = (
        *("serviceusage", "cloudresourcemanager", "iam", "iamcredentials", "sts", "storage"),
        "cloudkms",
    )
    assert of_type(prod, ":Service") == {
        f"api-{name}": {
            "type": "gcp:projects/service:Service",
            "project": PROJECT,
            "service": f"{name}.googleapis.com",
            "disableOnDestroy": False,
        }
        for name in names
    }


def test_the_state_is_one_bucket_and_one_key(prod: dict[str, dict[str, Any]]) -> None:
    assert prod["state-bucket"] == {
        "type": "gcp:storage/bucket:Bucket",
        "name": "acme-ml-prod-pulumi-state",
        "project": PROJECT,
        "location": "US-CENTRAL1",
        "storageClass": "STANDARD",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "versioning": {"enabled": True},
        "softDeletePolicy": {"retentionDurationSeconds": 30 * 86400},
        "lifecycleRules": [
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
            {
                "action": {"type": "Delete"},
                "condition": {"daysSinceNoncurrentTime": 365, "withState": "ARCHIVED"},
            },
        ],
        "forceDestroy": False,
        "labels": LABELS,
    }
    assert prod["state-keys"] == {
        "type": "gcp:kms/keyRing:KeyRing",
        "name": "pulumi-prod",
        "project": PROJECT,
        "location": "us-central1",
    }
    assert prod["state-key"] == {
        "type": "gcp:kms/cryptoKey:CryptoKey",
        "name": "stack-secrets",
        "keyRing": "state-keys-id",
        "purpose": "ENCRYPT_DECRYPT",
        "rotationPeriod": "7776000s",
        "labels": LABELS,
    }


def test_each_account_says_what_it_is_for(prod: dict[str, dict[str, Any]]) -> None:
    words = {
        "plan": "Plans and drift checks of the deployed branch; reads only",
        "deploy": "Deploys the training stack",
        "preview": "Previews of pull requests; reads settings only",
    }
    assert of_type(prod, ":Account") == {
        f"{name}-account": {
            "type": "gcp:serviceaccount/account:Account",
            "project": PROJECT,
            "accountId": f"ci-{name}-prod",
            "displayName": f"CI: {name} (prod)",
            "description": text,
        }
        for name, text in words.items()
    }


def test_each_role_has_an_id_of_its_environment(prod: dict[str, dict[str, Any]]) -> None:
    roles = of_type(prod, ":IAMCustomRole")
    named = {
        name: {key: value for key, value in role.items() if key != "permissions"}
        for name, role in roles.items()
    }
    names = {
        "plan": ["plan"],
        "preview": ["preview"],
        "deploy": [
            "deploy", "deploy_secretmanager", "deploy_storage", "grant_buckets",
            "grant_cryptokeys", "grant_projects", "grant_repositories", "grant_secrets",
            "grant_serviceaccounts",
        ],
    }  # fmt: skip
    own = {"type": "gcp:projects/iAMCustomRole:IAMCustomRole", "project": PROJECT, "stage": "GA"}
    assert named == {
        **{
            f"{account}-{name}-role": own
            | {
                "roleId": f"training_{name}_prod",
                "title": f"Training: {name} (prod)",
                "description": NEEDS,
            }
            for account, parts in names.items()
            for name in parts
        },
        "advance-role": own
        | {
            "roleId": "training_advance_prod",
            "title": "Training: advance (prod)",
            "description": "What submitting a slot of a schedule needs; docs/bootstrap.md",
        },
    }
    assert roles["deploy-deploy_secretmanager-role"]["permissions"] == [
        "secretmanager.secrets.delete", "secretmanager.secrets.update"
    ]  # fmt: skip
    assert roles["deploy-deploy_storage-role"]["permissions"] == [
        "storage.buckets.delete", "storage.buckets.update", "storage.objects.create",
        "storage.objects.delete", "storage.objects.get", "storage.objects.list",
        "storage.objects.update",
    ]  # fmt: skip


def test_the_timer_of_schedules_reads_the_state_submits_and_writes_records(
    prod: dict[str, dict[str, Any]],
) -> None:
    granted = {
        name: {key: value for key, value in each.items() if key != "type"}
        for name, each in prod.items()
        if name.startswith("advance-") and name != "advance-role"
    }
    records = "resource.name.startsWith('projects/_/buckets/acme-ml-prod-control-prod/objects/')"
    assert granted == {
        "advance-state": {
            "bucket": "acme-ml-prod-pulumi-state",
            "role": "roles/storage.objectViewer",
            "member": ADVANCER,
        },
        "advance-jobs": {
            "project": PROJECT,
            "role": "projects/acme-ml-prod/roles/training_advance_prod",
            "member": ADVANCER,
        },
        "advance-records": {
            "project": PROJECT,
            "role": "roles/storage.objectUser",
            "member": ADVANCER,
            "condition": {"title": "records of jobs", "expression": records},
        },
    }


def test_conditions_are_called_as_what_they_are_of(prod: dict[str, dict[str, Any]]) -> None:
    titles = {
        name: each["condition"]["title"]
        for name, each in of_type(prod, ":IAMMember").items()
        if "condition" in each
    }
    parts = (
        *("deploy_secretmanager", "deploy_storage", "grant_buckets", "grant_cryptokeys"),
        *("grant_projects", "grant_secrets", "grant_serviceaccounts"),
    )
    assert titles == {
        **{f"deploy-{part}": part for part in parts},
        "plan-objects": "objects",
        "advance-records": "records of jobs",
    }


#: What may be done to what, by the beginning of a role's name: each role holds on these alone.
STORAGE: Final = (
    "resource.name.startsWith('projects/_/buckets/acme-ml-prod-') && "
    "((resource.type == 'storage.googleapis.com/Bucket' && resource.name.endsWith('-prod') && "
    "resource.name != 'projects/_/buckets/acme-ml-prod-pulumi-state') || "
    "(resource.type == 'storage.googleapis.com/Object' && "
    "resource.name.extract('/buckets/{bucket}/objects/').endsWith('-prod') && "
    "resource.name.extract('/buckets/{bucket}/objects/') != 'acme-ml-prod-pulumi-state'))"
)
SECRETS: Final = (
    "resource.type == 'secretmanager.googleapis.com/Secret' && "
    "resource.name.startsWith('projects/109876543210/secrets/') && "
    "resource.name.endsWith('-prod')"
)
ONLY: Final = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly"
KEYS: Final = (
    "resource.type == 'cloudkms.googleapis.com/CryptoKey' && "
    "resource.name.extract('/keyRings/{ring}/') != 'pulumi-prod'"
)


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("deploy_storage", STORAGE),
        ("deploy_secretmanager", SECRETS),
        ("grant_buckets", f"({STORAGE}) && {ONLY}(['roles/storage.objectCreator', "
         "'roles/storage.objectUser', 'roles/storage.objectViewer'])"),
        ("grant_secrets", f"{SECRETS} && {ONLY}(['roles/secretmanager.secretAccessor'])"),
        ("grant_cryptokeys", f"{KEYS} && {ONLY}(['roles/cloudkms.cryptoKeyEncrypterDecrypter'])"),
        ("grant_serviceaccounts", f"{ONLY}(['roles/iam.serviceAccountUser'])"),
        ("grant_projects", "resource.type == 'cloudresourcemanager.googleapis.com/Project' && "
         f"({ONLY}(['roles/aiplatform.user', 'roles/batch.agentReporter', "
         "'roles/batch.jobsEditor', 'roles/bigquery.readSessionUser', "
         "'roles/cloudbuild.builds.editor', 'roles/compute.networkAdmin', "
         "'roles/compute.networkUser', 'roles/compute.viewer', 'roles/dns.peer', "
         f"'roles/logging.logWriter']) || {ONLY}(['roles/logging.viewer']))"),
    ],
)  # fmt: skip
def test_what_deploy_changes_or_grants_is_the_stacks_own(
    prod: dict[str, dict[str, Any]], name: str, condition: str
) -> None:
    assert prod[f"deploy-{name}"]["condition"]["expression"] == condition
    assert "condition" not in prod["deploy-deploy"]
    assert "condition" not in prod["deploy-grant_repositories"]


def test_the_pool_and_the_provider_are_of_one_repository(prod: dict[str, dict[str, Any]]) -> None:
    assert prod["github-pool"] == {
        "type": "gcp:iam/workloadIdentityPool:WorkloadIdentityPool",
        "project": PROJECT,
        "workloadIdentityPoolId": "github-prod",
        "displayName": "GitHub (prod)",
        "description": "Workflows of octo-org/octo-repo (owner 65, repository 74)",
    }
    provider = dict(prod["github-provider"])
    assert len(provider.pop("attributeMapping")) == 8
    assert provider == {
        "type": "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
        "project": PROJECT,
        "workloadIdentityPoolId": "github-prod",
        "workloadIdentityPoolProviderId": "github",
        "displayName": "GitHub Actions",
        "oidc": {"issuerUri": "https://token.actions.githubusercontent.com"},
        "attributeCondition": "assertion.repository_owner_id == '65' && "
        "assertion.repository_id == '74' && assertion.actor_id != '49699333' && "
        "attribute.ci_role != 'none'",
    }


def test_the_tag_hangs_on_each_account_of_ci_and_on_those_that_are_listed(
    prod: dict[str, dict[str, Any]],
) -> None:
    assert prod["denial-tag-key"] == {
        "type": "gcp:tags/tagKey:TagKey",
        "parent": f"projects/{PROJECT}",
        "shortName": "vertex-training-prod",
        "description": "Accounts that CI must not change or act as",
    }
    assert prod["denial-tag-value"] == {
        "type": "gcp:tags/tagValue:TagValue",
        "parent": "denial-tag-key-id",
        "shortName": "protected",
        "description": "docs/bootstrap.md",
    }
    accounts = {
        f"denial-of-{name}": unique_id(f"ci-{name}-prod@{PROJECT}.iam.gserviceaccount.com")
        for name in ("plan", "deploy", "preview")
    }
    accounts["denial-of-account-109876543210-compute"] = DEFAULT
    assert of_type(prod, ":TagBinding") == {
        name: {
            "type": "gcp:tags/tagBinding:TagBinding",
            "parent": f"//iam.googleapis.com/projects/{PROJECT}/serviceAccounts/{account}",
            "tagValue": "denial-tag-value-id",
        }
        for name, account in accounts.items()
    }


def test_what_is_not_given_is_the_safer_choice() -> None:
    defaults = PROD.model_dump(exclude={"stack", "project", "region", "project_number"})
    github = defaults.pop("github")
    assert (github["branch"], github["environment"]) == ("main", "")
    assert defaults == {
        "labels": {},
        "state": {"bucket": None, "soft_delete_days": 30, "keep_noncurrent_days": 365},
        "rotation_days": 90,
        "pull_requests": False,
        "schedules": False,
        "plan_reads": [],
        "datasets": [],
        "deny_policy": True,
        "protected_accounts": [],
    }


def raw(**changed: Any) -> dict[str, Any]:
    own = {"owner": "octo-org", "ownerId": "65", "repository": "octo-repo", "repositoryId": "74"}
    given = {"stack": "prod", "project": PROJECT, "region": "us-central1", "github": own}
    return given | {"projectNumber": "109876543210"} | changed


def test_a_mistake_is_told_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("config:\n  vertex-training-bootstrap:labels:\n    Team: x\n")
    monkeypatch.setattr(config.engine, "read_config", lambda *_: raw(labels={"Team": "x"}))
    with pytest.raises(ConfigError) as refused:
        config.read(tmp_path)
    [problem] = refused.value.problems
    assert (problem.location.file, problem.location.line) == ("Pulumi.prod.yaml", 3)
