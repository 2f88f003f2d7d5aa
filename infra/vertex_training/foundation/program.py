"""Declares the resources of an environment in order.

    apis ──► state bucket, key ──┐
      └────► GitHub federation ──┴──► preview, plan, deploy ──► denial

This program does not read resources of the training stacks, and they never change its resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import engine
from vertex_training.errors import ConfigError
from vertex_training.foundation import conditions, identities
from vertex_training.foundation.denial import Denial
from vertex_training.foundation.federation import Federation, Role
from vertex_training.foundation.identities import Identity
from vertex_training.foundation.settings import Settings, read
from vertex_training.foundation.state import State
from vertex_training.naming import STAGING

APIS: Final = (
    "serviceusage",
    "cloudresourcemanager",
    "iam",
    "iamcredentials",
    "sts",
    "storage",
    "cloudkms",
)


def run(file: str | Path) -> None:
    """Run the program of a folder ``bootstrap/``; ``file`` is its ``__main__.py``.

    Ends the process with all mistakes in the environment's file as text.
    """
    try:
        deploy(read(Path(file).parent))
    except ConfigError as error:
        engine.end_with_message(error.report())


def deploy(settings: Settings) -> None:
    """Declare all resources, and export the values that GitHub and the training stack need."""
    apis = [
        gcp.projects.Service(
            f"api-{api}",
            project=settings.project,
            service=f"{api}.googleapis.com",
            disable_on_destroy=False,
        )
        for api in APIS
    ]
    state = State("state", settings=settings, after=apis)
    github = Federation("github", settings=settings, after=apis)
    plan = create_plan_identity(settings, state, github, apis)
    changes = create_deploy_identity(settings, state, github, apis)
    accounts = {"plan": plan.account, "deploy": changes.account}
    if settings.pull_requests:
        preview = create_preview_identity(settings, state, github, apis)
        accounts["preview"] = preview.account
        pulumi.export("previewAccount", preview.email)
        pulumi.export("builder", github.principals(Role.BUILD))
    if settings.schedules:
        tokens = github.principals(Role.ADVANCE)
        identities.Advance("advance", settings=settings, state=state, member=tokens, after=apis)
        pulumi.export("advancer", tokens)
    if settings.deny_policy:
        Denial("denial", settings=settings, accounts=accounts, after=apis)

    pulumi.export("backend", f"gs://{settings.state_bucket}")
    pulumi.export("secretsProvider", f"gcpkms://{state.key_path}")
    pulumi.export("workloadIdentityProvider", f"{github.pool}/providers/github")
    pulumi.export("planAccount", plan.email)
    pulumi.export("deployAccount", changes.email)
    pulumi.export("deployer", pulumi.Output.concat("serviceAccount:", changes.email))


def create_preview_identity(
    settings: Settings, state: State, github: Federation, after: Sequence[pulumi.Resource]
) -> Identity:
    """Create ``preview``, the account of pull requests. It reads only the state's objects."""
    preview = Identity(
        "preview",
        settings=settings,
        description="Previews of pull requests; reads settings only",
        state=state,
        state_role=identities.READ_OBJECTS,
        key_role=identities.DECRYPT,
        after=after,
    )
    preview.allow_impersonation(Role.PREVIEW, github)
    preview.grant_custom_role("preview", conditions.of_plan(conditions.needs()))
    return preview


def create_plan_identity(
    settings: Settings, state: State, github: Federation, after: Sequence[pulumi.Resource]
) -> Identity:
    """Create ``plan``, the account of plans and nightly drift checks of the deployed branch."""
    plan = Identity(
        "plan",
        settings=settings,
        description="Plans and drift checks of the deployed branch; reads only",
        state=state,
        state_role=identities.READ_OBJECTS,
        key_role=identities.DECRYPT,
        after=after,
    )
    plan.allow_impersonation(Role.PLAN, github)
    plan.grant_custom_role("plan", conditions.of_plan(conditions.needs()))
    plan.grant_role("policies", identities.READ_ORG_POLICIES)
    plan.grant_role("objects", identities.READ_OBJECTS, condition=_in_readable_buckets(settings))
    return plan


def create_deploy_identity(
    settings: Settings, state: State, github: Federation, after: Sequence[pulumi.Resource]
) -> Identity:
    """Create ``deploy``, the account that changes a stack, but not the state bucket itself."""
    account = Identity(
        "deploy",
        settings=settings,
        description="Deploys the training stack",
        state=state,
        state_role=identities.WRITE_OBJECTS,
        key_role=identities.ENCRYPT_DECRYPT,
        after=after,
    )
    account.allow_impersonation(Role.DEPLOY, github)
    account.grant_role("policies", identities.READ_ORG_POLICIES)
    for part in conditions.deploy_roles(settings, conditions.needs()):
        account.grant_custom_role(part.name, part.permissions, condition=part.condition)
    return account


def _in_readable_buckets(settings: Settings) -> str:
    """Return the CEL condition that an object is in the staging or a ``planReads`` bucket."""
    buckets = [settings.names.bucket(key) for key in (STAGING, *dict.fromkeys(settings.plan_reads))]
    return " || ".join(
        f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/')" for bucket in buckets
    )
