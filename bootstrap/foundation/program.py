"""What is made once for an environment, in order.

    apis ──► state bucket, key ──┐
      └────► GitHub federation ──┴──► plan, deploy

Nothing here reads what the training stacks hold, and they never touch what is here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from foundation import federation, identities, permissions
from foundation.federation import Federation
from foundation.identities import Identity
from foundation.settings import Settings
from foundation.state import State
from infra.naming import STAGING

APIS = (
    "serviceusage",
    "cloudresourcemanager",
    "iam",
    "iamcredentials",
    "sts",
    "storage",
    "cloudkms",
)


def deploy(settings: Settings) -> None:
    """Declare everything."""
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
    plan = looks(settings, state, github, apis)
    changes = deploys(settings, state, github, apis)

    pulumi.export("backend", f"gs://{settings.state_bucket}")
    pulumi.export("secretsProvider", f"gcpkms://{state.key_path}")
    pulumi.export("workloadIdentityProvider", f"{github.pool}/providers/github")
    pulumi.export("planAccount", plan.email)
    pulumi.export("deployAccount", changes.email)
    pulumi.export("submitter", pulumi.Output.concat("serviceAccount:", changes.email))


def looks(
    settings: Settings, state: State, github: Federation, after: Sequence[pulumi.Resource]
) -> Identity:
    """``plan``: previews of pull requests, and the nightly look for drift."""
    plan = Identity(
        "plan",
        settings=settings,
        description="Previews and drift checks; reads only",
        state=state,
        state_role=identities.READ_OBJECTS,
        key_role=identities.DECRYPT,
        after=after,
    )
    plan.becomes(federation.plans(settings), github)
    plan.may("plan", permissions.of_plan(permissions.needs()))
    plan.has("objects", identities.READ_OBJECTS, only=_objects_of(settings))
    return plan


def deploys(
    settings: Settings, state: State, github: Federation, after: Sequence[pulumi.Resource]
) -> Identity:
    """``deploy``: everything the stack is made of, but not the state bucket's own settings."""
    account = Identity(
        "deploy",
        settings=settings,
        description="Deploys the training stack",
        state=state,
        state_role=identities.WRITE_OBJECTS,
        key_role=identities.ENCRYPT,
        after=after,
    )
    account.becomes([federation.deploys(settings)], github)
    # The project-wide role ends where the state begins: there it has the narrower one from above.
    not_state = f"!resource.name.startsWith('projects/_/buckets/{settings.state_bucket}')"
    types = permissions.needs()
    account.may("deploy", permissions.of_deploy(types), only=not_state)
    account.may(
        "grant",
        permissions.of_granting(types),
        only=f"{not_state} && {permissions.only_grantable_roles()}",
    )
    return account


def _objects_of(settings: Settings) -> str:
    """Objects that the stack itself keeps: its packages, and the buckets that were named."""
    buckets = [settings.names.bucket(key) for key in (STAGING, *dict.fromkeys(settings.plan_reads))]
    return " || ".join(
        f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/')" for bucket in buckets
    )
