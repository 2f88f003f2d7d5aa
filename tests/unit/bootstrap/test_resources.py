"""Every resource of an environment, with all of its inputs, and the words of conditions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest

from tests.unit.bootstrap.recorder import registered, unique_id
from tests.unit.bootstrap.test_program import PROD
from vertex_training.errors import ConfigError
from vertex_training.foundation import config
from vertex_training.foundation.conditions import only_these_roles
from vertex_training.foundation.denial import denial_condition, tag_key
from vertex_training.foundation.federation import Role, attribute_mapping, role_conditions
from vertex_training.naming import Names

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


@pytest.mark.parametrize("stack", ["prod", "local"])
def test_state_and_key_are_protected_but_in_a_rehearsal(
    stack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    protected: dict[str, bool | None] = {}
    begin = pulumi.CustomResource.__init__

    def remember(self: Any, type_: str, name: str, *words: Any, **given: Any) -> None:
        options = next(each for each in words if isinstance(each, pulumi.ResourceOptions))
        protected[name] = options.protect
        begin(self, type_, name, *words, **given)

    monkeypatch.setattr(pulumi.CustomResource, "__init__", remember)
    found = registered(stack)
    names = ("state-bucket", "state-keys", "state-key")
    assert {name: protected[name] for name in names} == dict.fromkeys(names, stack == "prod")
    assert found["state-bucket"]["forceDestroy"] is (stack == "local")


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


def test_ids_of_roles_have_no_dashes(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = config.parse
    monkeypatch.setattr(config, "parse", lambda raw: parse({**raw, "stack": "prod-eu"}))
    roles = of_type(registered("prod", schedules=True), ":IAMCustomRole")
    names = {each["roleId"] for each in roles.values()}
    assert {"training_plan_prod_eu", "training_deploy_prod_eu", "training_advance_prod_eu"} <= names
    assert not [name for name in names if "-" in name]


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


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (20, [10, 10])]
)
def test_one_list_of_roles_has_ten_at_most(count: int, sizes: list[int]) -> None:
    roles = [f"roles/a.{number}" for number in range(count)]
    parts = only_these_roles(roles).split(" || ")
    assert [part.count("'roles/") for part in parts] == sizes
    assert all(part.startswith(f"{ONLY}([") and part.endswith("])") for part in parts)
    assert re.findall(r"'(roles/[^']+)'", " ".join(parts)) == roles


def test_datasets_are_granted_on_by_name_and_each_one_once() -> None:
    found = registered("prod", datasets=["clicks", "views", "clicks"])
    assert found["deploy-grant_datasets"]["condition"]["expression"] == (
        "resource.type == 'bigquery.googleapis.com/Dataset' && "
        "(resource.name == 'projects/acme-ml-prod/datasets/clicks' || "
        "resource.name == 'projects/acme-ml-prod/datasets/views')"
    )
    assert found["deploy-grant_datasets-role"]["permissions"] == [
        "bigquery.datasets.setIamPolicy", "bigquery.datasets.update"
    ]  # fmt: skip


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


def of_file(name: str) -> str:
    file = f"assertion.repository + '/.github/workflows/{name}.yml@' + assertion.ref"
    return f"assertion.job_workflow_ref == {file}"


def test_a_token_has_a_role_by_environment_branch_event_and_workflow() -> None:
    main = "assertion.ref == 'refs/heads/main'"
    merged = f"assertion.event_name in ['push', 'workflow_dispatch'] && {of_file('deploy')}"
    timed = "assertion.event_name in ['schedule', 'workflow_dispatch']"

    def at(environment: str) -> str:
        return f"has(assertion.environment) && assertion.environment == '{environment}'"

    wanted = {
        Role.DEPLOY: f"{at('prod')} && {main} && {merged}",
        Role.PLAN: f"{at('prod-plan')} && {main} && ({merged} || {timed} && {of_file('drift')})",
    }
    assert role_conditions(PROD) == wanted
    every = PROD.model_copy(update={"schedules": True, "pull_requests": True})
    assert role_conditions(every) == wanted | {
        Role.ADVANCE: f"{at('prod-advance')} && {main} && {timed} && {of_file('advance')}",
        Role.PREVIEW: (
            "!has(assertion.environment) && assertion.event_name in ['pull_request'] && "
            f"{of_file('preview')} && !assertion.head_ref.startsWith('dependabot/')"
        ),
        Role.BUILD: (
            f"{at('prod-images')} && {main} && assertion.event_name in ['workflow_dispatch'] && "
            f"{of_file('images')}"
        ),
    }
    mapped = attribute_mapping(PROD)
    assert mapped["attribute.ci_role"] == (
        f"{wanted[Role.PLAN]} ? 'plan' : ({wanted[Role.DEPLOY]} ? 'deploy' : ('none'))"
    )
    assert mapped["attribute.environment"] == (
        "has(assertion.environment) ? assertion.environment : 'none'"
    )


#: https://docs.cloud.google.com/iam/docs/deny-permissions-support
NEVER: Final = {
    "iam.googleapis.com": [
        "serviceAccountKeys.*", "serviceAccounts.getAccessToken", "serviceAccounts.getOpenIdToken",
        "serviceAccounts.implicitDelegation", "serviceAccounts.signBlob", "serviceAccounts.signJwt",
        "workloadIdentityPools.*", "workloadIdentityPoolProviders.*",
        "workloadIdentityPoolProviderKeys.*", "roles.create", "roles.update", "roles.delete",
        "roles.undelete",
    ],
    "secretmanager.googleapis.com": [
        "versions.access", "versions.add", "versions.destroy", "versions.disable",
        "versions.enable",
    ],
    "cloudkms.googleapis.com": ["cryptoKeyVersions.destroy", "keyRings.setIamPolicy"],
    "cloudresourcemanager.googleapis.com": [
        "projects.delete", "projects.move", "projects.createBillingAssignment",
        "projects.deleteBillingAssignment",
    ],
    "serviceusage.googleapis.com": ["services.disable"],
}  # fmt: skip


def test_the_accounts_of_ci_are_denied_what_no_deployment_needs(
    prod: dict[str, dict[str, Any]],
) -> None:
    principals = [
        f"principal://iam.googleapis.com/projects/-/serviceAccounts/ci-{name}-prod@{PROJECT}"
        ".iam.gserviceaccount.com"
        for name in ("plan", "deploy", "preview")
    ]
    verbs = ("actAs", "setIamPolicy", "update", "delete", "undelete", "disable", "enable")
    assert prod["denial-policy"] == {
        "type": "gcp:iam/denyPolicy:DenyPolicy",
        "name": "vertex-training-prod",
        "parent": f"cloudresourcemanager.googleapis.com%2Fprojects%2F{PROJECT}",
        "displayName": "Out of reach of CI (prod)",
        "rules": [
            {
                "description": "What no deployment needs",
                "denyRule": {
                    "deniedPrincipals": principals,
                    "deniedPermissions": [
                        f"{service}/{permission}"
                        for service, permissions in NEVER.items()
                        for permission in permissions
                    ],
                },
            },
            {
                "description": "Accounts of CI",
                "denyRule": {
                    "deniedPrincipals": principals,
                    "deniedPermissions": [
                        f"iam.googleapis.com/serviceAccounts.{verb}" for verb in verbs
                    ],
                    "denialCondition": {
                        "title": "Accounts of CI",
                        "expression": "resource.matchTag("
                        "'acme-ml-prod/vertex-training-prod', 'protected')",
                    },
                },
            },
        ],
    }
    assert (tag_key(PROD), denial_condition(PROD)) == (
        "vertex-training-prod",
        "resource.matchTag('acme-ml-prod/vertex-training-prod', 'protected')",
    )


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


def test_of_two_accounts_of_one_name_each_is_out_of_reach() -> None:
    app, own = (
        f"{PROJECT}@{domain}.gserviceaccount.com" for domain in ("appspot", f"{PROJECT}.iam")
    )
    found = of_type(registered("prod", protectedAccounts=[app, own, app]), ":TagBinding")
    place = f"//iam.googleapis.com/projects/{PROJECT}/serviceAccounts"
    assert {name: each["parent"] for name, each in found.items() if "of-account-" in name} == {
        f"denial-of-account-{PROJECT}": f"{place}/{app}",
        f"denial-of-account-{own}": f"{place}/{own}",
    }


def test_an_environment_has_names_of_its_own() -> None:
    assert (PROD.state_bucket, PROD.key_ring, PROD.environment, PROD.is_local) == (
        "acme-ml-prod-pulumi-state", "pulumi-prod", "prod", False
    )  # fmt: skip
    assert PROD.names == Names(PROJECT, "109876543210", "us-central1", "prod")
    github = PROD.github.model_copy(update={"environment": "production"})
    state = PROD.state.model_copy(update={"bucket": "other"})
    changed = PROD.model_copy(update={"github": github, "state": state, "project": "local-x"})
    assert (changed.environment, changed.state_bucket, changed.is_local) == (
        "production", "other", True
    )  # fmt: skip


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


@pytest.mark.parametrize(
    "changed",
    [
        {"state": {"softDeleteDays": 7, "keepNoncurrentDays": 1}, "rotationDays": 2},
        {"state": {"softDeleteDays": 90, "keepNoncurrentDays": 3650}, "rotationDays": 365},
        {"datasets": [f"d_{number}" for number in range(10)]},
        {"stack": "a" * 20},
        {"planReads": [f"data-{number}" for number in range(12)]},
    ],
)
def test_the_bounds_of_settings_are_allowed(changed: dict[str, Any]) -> None:
    config.parse(raw(**changed))


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"state": {"softDeleteDays": 6}}, "state.softDeleteDays"),
        ({"state": {"softDeleteDays": 91}}, "state.softDeleteDays"),
        ({"state": {"keepNoncurrentDays": 0}}, "state.keepNoncurrentDays"),
        ({"state": {"keepNoncurrentDays": 3651}}, "state.keepNoncurrentDays"),
        ({"rotationDays": 1}, "rotationDays"),
        ({"rotationDays": 366}, "rotationDays"),
        ({"datasets": [f"d_{number}" for number in range(11)]}, "datasets"),
        ({"datasets": ["acme.clicks"]}, "datasets[0]"),
        ({"stack": "a" * 21}, "stack"),
        ({"stack": "Prod"}, "stack"),
        ({"region": "us-central1-a"}, "region"),
        ({"protectedAccounts": ["somebody@example.com"]}, "protectedAccounts[0]"),
        ({"planReads": ["control", "staging", "data"]}, "planReads"),
        ({"planReads": [f"data-{number}" for number in range(13)]}, "planReads"),
        ({"planReads": ["data", "x') || true || ('"]}, "planReads[1]"),
        ({"planReads": ["gs://acme-data"]}, "planReads[0]"),
        ({"labels": {"Team": "x"}}, "labels.Team"),
    ],
)
def test_beyond_them_it_is_refused_by_its_place(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config.parse(raw(**changed))
    [problem] = refused.value.problems
    assert f":{path}: " in str(problem)


def test_the_bucket_of_the_state_has_a_name_of_63_characters_at_most() -> None:
    assert config.parse(raw(state={"bucket": "x" * 63})).state_bucket == "x" * 63
    with pytest.raises(ConfigError):
        config.parse(raw(state={"bucket": "x" * 64}))


def test_a_mistake_is_told_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("config:\n  vertex-training-bootstrap:labels:\n    Team: x\n")
    monkeypatch.setattr(config.engine, "read_config", lambda *_: raw(labels={"Team": "x"}))
    with pytest.raises(ConfigError) as refused:
        config.read(tmp_path)
    [problem] = refused.value.problems
    assert (problem.location.file, problem.location.line) == ("Pulumi.prod.yaml", 3)
