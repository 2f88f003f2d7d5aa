"""The program under Pulumi's mocks: who may do what on what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from foundation import config, permissions, program

ROOT = Path(__file__).parents[3]
PLAN = "serviceAccount:ci-plan-prod@acme-ml-prod.iam.gserviceaccount.com"
DEPLOY = "serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com"
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
    "roles/cloudkms.cryptoKeyDecrypter": {
        "cloudkms.cryptoKeyVersions.useToDecrypt",
        "cloudkms.locations.get",
        "cloudkms.locations.list",
        "resourcemanager.projects.get",
    },
}


class Recorder(pulumi.runtime.Mocks):
    """Remembers what is registered and answers with what the cloud would fill in."""

    def __init__(self) -> None:
        self.registered: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered[args.name] = {"type": args.typ, **args.inputs}
        state = dict(args.inputs)
        if args.typ == "gcp:serviceaccount/account:Account":
            email = f"{args.inputs['accountId']}@{args.inputs['project']}.iam.gserviceaccount.com"
            state |= {"email": email, "member": f"serviceAccount:{email}", "name": email}
        if args.typ == "gcp:projects/iAMCustomRole:IAMCustomRole":
            state["name"] = f"projects/{args.inputs['project']}/roles/{args.inputs['roleId']}"
        return f"{args.name}-id", state

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(f"a preview must not look anything up: {args.token}")


@pytest.fixture(scope="module")
def registered() -> dict[str, dict[str, Any]]:
    file = yaml.safe_load((ROOT / "bootstrap" / "Pulumi.prod.yaml").read_text())["config"]
    raw = {key.split(":")[1]: value for key, value in file.items()}
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, config.SCHEMA.namespace, "prod")

    @pulumi.runtime.test
    def run() -> None:
        program.deploy(config.parse(raw | {"stack": "prod"}))

    run()
    return recorder.registered


def grants(registered: dict[str, dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """(member, role, place, condition) of every grant."""
    places = ("bucket", "cryptoKeyId", "serviceAccountId", "project")
    return {
        (
            inputs["member"],
            inputs["role"],
            next(inputs[key] for key in places if key in inputs),
            inputs.get("condition", {}).get("expression", ""),
        )
        for inputs in registered.values()
        if inputs["type"].lower().endswith("iammember")
    }


def test_each_account_gets_exactly_these_grants(registered: dict[str, dict[str, Any]]) -> None:
    project, state = "acme-ml-prod", "acme-ml-prod-pulumi-state"
    pool = "projects/109876543210/locations/global/workloadIdentityPools/github-prod"
    token = f"principal://iam.googleapis.com/{pool}/subject/repo:octo-org/octo-repo:"
    not_state = f"!resource.name.startsWith('projects/_/buckets/{state}')"
    objects = (
        "resource.name.startsWith('projects/_/buckets/acme-ml-prod-staging-prod/objects/') || "
        "resource.name.startsWith('projects/_/buckets/acme-ml-prod-data-prod/objects/')"
    )
    only = f"{not_state} && {permissions.grantable_roles_condition()}"
    user = "roles/iam.workloadIdentityUser"
    both = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    assert grants(registered) == {
        (PLAN, "roles/storage.objectViewer", state, ""),
        (PLAN, "roles/cloudkms.cryptoKeyDecrypter", "state-key-id", ""),
        (PLAN, f"projects/{project}/roles/training_plan_prod", project, ""),
        (PLAN, "roles/storage.objectViewer", project, objects),
        (DEPLOY, "roles/storage.objectUser", state, ""),
        (DEPLOY, both, "state-key-id", ""),
        (DEPLOY, f"projects/{project}/roles/training_deploy_prod", project, not_state),
        (DEPLOY, f"projects/{project}/roles/training_grant_prod", project, only),
        (f"{token}pull_request", user, PLAN.partition(":")[2], ""),
        (f"{token}ref:refs/heads/main", user, PLAN.partition(":")[2], ""),
        (f"{token}environment:prod", user, DEPLOY.partition(":")[2], ""),
    }


def test_the_roles_hold_what_was_derived(registered: dict[str, dict[str, Any]]) -> None:
    types = permissions.needs()
    assert registered["plan-plan-role"]["permissions"] == permissions.of_plan(types)
    assert registered["deploy-deploy-role"]["permissions"] == permissions.of_deploy(types)
    assert registered["deploy-grant-role"]["permissions"] == permissions.of_grant(types)


def test_nothing_that_plan_has_writes_submits_or_acts_as_anyone(
    registered: dict[str, dict[str, Any]],
) -> None:
    held: set[str] = set(registered["plan-plan-role"]["permissions"])
    for member, role, _, _ in grants(registered):
        if member == PLAN and role.startswith("roles/"):
            held |= PREDEFINED[role]
    assert {permission.rpartition(".")[2] for permission in held} == {
        "get",
        "list",
        "getIamPolicy",
        "useToDecrypt",
    }


def test_state_is_closed_versioned_and_can_be_brought_back(
    registered: dict[str, dict[str, Any]],
) -> None:
    bucket = registered["state-bucket"]
    assert bucket["uniformBucketLevelAccess"] is True
    assert bucket["publicAccessPrevention"] == "enforced"
    assert bucket["versioning"] == {"enabled": True}
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 30 * 24 * 3600}
    assert bucket["forceDestroy"] is False
    assert registered["state-key"]["rotationPeriod"] == "7776000s"


def test_tokens_of_one_repository_are_taken(registered: dict[str, dict[str, Any]]) -> None:
    provider = registered["github-provider"]
    assert provider["oidc"]["issuerUri"] == "https://token.actions.githubusercontent.com"
    assert "assertion.repository_owner_id == '65'" in provider["attributeCondition"]
    assert "assertion.repository_id == '74'" in provider["attributeCondition"]
    assert provider["attributeMapping"]["google.subject"] == "assertion.sub"
