"""Declares the resources of an environment in order.

    apis ──► state bucket, key ──┐
      └────► GitHub federation ──┴──► preview, plan, deploy ──► denial

``preview`` and ``plan`` read settings and IAM policies. They cannot read secrets, submit jobs, or
act as another account. ``preview`` runs unreviewed code: it reads only the objects of Pulumi's
state, and exists only with ``pullRequests``. ``plan`` also reads objects in the buckets that the
settings list. ``deploy`` creates, changes and deletes the resources of the training stacks. The
accounts have no keys: workflows impersonate the accounts with their own tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import engine, naming
from vertex_training.errors import ConfigError
from vertex_training.foundation import conditions
from vertex_training.foundation.denial import Denial
from vertex_training.foundation.federation import Federation, Role
from vertex_training.foundation.settings import Settings, read
from vertex_training.naming import CONTROL, STAGING

APIS: Final = (
    "serviceusage",
    "cloudresourcemanager",
    "iam",
    "iamcredentials",
    "sts",
    "storage",
    "cloudkms",
)
#: Role for preflights, granted on projects:
#: https://docs.cloud.google.com/iam/docs/roles-permissions/orgpolicy
READ_ORG_POLICIES: Final = "roles/orgpolicy.policyViewer"
READ_OBJECTS: Final = "roles/storage.objectViewer"
WRITE_OBJECTS: Final = "roles/storage.objectUser"
DAY: Final = 24 * 3600
#: Name of the key in its key ring.
KEY: Final = "stack-secrets"


def run(file: str | Path) -> None:
    """Run the program of the folder ``bootstrap/``. ``file`` is its ``__main__.py``.

    Mistakes in the environment's file end the process with a list of all mistakes.
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
    create = functools.partial(Identity, settings=settings, state=state, github=github, after=apis)
    permissions = conditions.permissions_of(conditions.needs(), "read")
    plan = create(Role.PLAN, "Plans and drift checks of the deployed branch; reads only")
    plan.grant_custom_role("plan", permissions)
    plan.grant_role("policies", READ_ORG_POLICIES)
    readable = _in_buckets(settings, STAGING, *settings.plan_reads)
    plan.grant_role("objects", READ_OBJECTS, condition=readable)
    changes = create(Role.DEPLOY, "Deploys the training stack", can_write=True)
    changes.grant_role("policies", READ_ORG_POLICIES)
    for part in conditions.deploy_roles(settings, conditions.needs()):
        changes.grant_custom_role(part.name, part.permissions, condition=part.condition)
    accounts = {"plan": plan.account, "deploy": changes.account}
    if settings.pull_requests:
        preview = create(Role.PREVIEW, "Previews of pull requests; reads settings only")
        preview.grant_custom_role("preview", permissions)
        accounts["preview"] = preview.account
        pulumi.export("previewAccount", preview.email)
        pulumi.export("builder", github.principals(Role.BUILD))
    if settings.schedules:
        tokens = github.principals(Role.ADVANCE)
        Advance("advance", settings=settings, state=state, member=tokens, after=apis)
        pulumi.export("advancer", tokens)
    if settings.deny_policy:
        Denial("denial", settings=settings, accounts=accounts, after=apis)

    pulumi.export("backend", f"gs://{settings.state_bucket}")
    pulumi.export("secretsProvider", f"gcpkms://{state.key_path}")
    pulumi.export("workloadIdentityProvider", f"{github.pool}/providers/github")
    pulumi.export("planAccount", plan.email)
    pulumi.export("deployAccount", changes.email)
    pulumi.export("deployer", pulumi.Output.concat("serviceAccount:", changes.email))


def _in_buckets(settings: Settings, *keys: str) -> str:
    """Return the CEL condition that an object is in one of the stack's buckets."""
    buckets = map(settings.names.bucket, dict.fromkeys(keys))
    return " || ".join(
        f"resource.name.startsWith('projects/_/buckets/{bucket}/objects/')" for bucket in buckets
    )


def _grant(
    name: str,
    settings: Settings,
    role: pulumi.Input[str],
    member: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    title: str = "",
    condition: str = "",
) -> None:
    """Grant a role on the project, under ``condition`` (CEL) unless it is empty."""
    when = gcp.projects.IAMMemberConditionArgs(title=title, expression=condition)
    gcp.projects.IAMMember(
        name,
        project=settings.project,
        role=role,
        member=member,
        condition=when if condition else None,
        opts=opts,
    )


class State(pulumi.ComponentResource):
    """The bucket for Pulumi's state, and the key that encrypts its secrets.

    The state is the only record of a stack's resources. So ``pulumi destroy`` cannot delete the
    bucket or the key, except in the local cloud, and old checkpoints remain.
    """

    bucket: gcp.storage.Bucket
    key: gcp.kms.CryptoKey
    key_path: str
    """The key's resource name, which is known before the key exists."""

    def __init__(self, name: str, *, settings: Settings, after: Sequence[pulumi.Resource]) -> None:
        """Declare the bucket and the key, which depend on ``after``."""
        super().__init__("vertextraining:bootstrap:State", name)
        child = pulumi.ResourceOptions(parent=self, depends_on=after, protect=not settings.is_local)
        self.bucket = _create_bucket(name, settings, child)
        self.key_path = (
            f"projects/{settings.project}/locations/{settings.region}/keyRings/"
            f"{settings.key_ring}/cryptoKeys/{KEY}"
        )
        self.key = _create_key(name, settings, child)
        self.register_outputs({"bucket": self.bucket.url, "key": self.key.id})


def _create_bucket(
    name: str, settings: Settings, opts: pulumi.ResourceOptions
) -> gcp.storage.Bucket:
    return gcp.storage.Bucket(
        f"{name}-bucket",
        name=settings.state_bucket,
        project=settings.project,
        location=settings.region.upper(),  # the service returns uppercase letters
        storage_class="STANDARD",
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        versioning={"enabled": True},
        soft_delete_policy={"retention_duration_seconds": settings.state.soft_delete_days * DAY},
        lifecycle_rules=[
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
            {
                "action": {"type": "Delete"},
                "condition": {
                    "days_since_noncurrent_time": settings.state.keep_noncurrent_days,
                    "with_state": "ARCHIVED",
                },
            },
        ],
        force_destroy=settings.is_local,
        labels=settings.names.labels(settings.labels),
        opts=opts,
    )


def _create_key(name: str, settings: Settings, opts: pulumi.ResourceOptions) -> gcp.kms.CryptoKey:
    ring = gcp.kms.KeyRing(
        f"{name}-keys",
        name=settings.key_ring,
        project=settings.project,
        location=settings.region,
        opts=opts,
    )
    return gcp.kms.CryptoKey(
        f"{name}-key",
        name=KEY,
        key_ring=ring.id,
        purpose="ENCRYPT_DECRYPT",
        # Old versions of the key remain, so that data encrypted with them can be read.
        rotation_period=f"{settings.rotation_days * DAY}s",
        labels=settings.names.labels(settings.labels),
        opts=opts,
    )


def _create_role(
    resource_name: str,
    name: str,
    settings: Settings,
    description: str,
    permissions: Sequence[str],
    opts: pulumi.ResourceOptions,
) -> gcp.projects.IAMCustomRole:
    return gcp.projects.IAMCustomRole(
        resource_name,
        project=settings.project,
        # Ids of roles have no dashes, and are reserved for weeks after a role is deleted.
        role_id=f"training_{name}_{settings.stack.replace('-', '_')}",
        title=f"Training: {name} ({settings.stack})",
        description=description,
        permissions=list(permissions),
        stage="GA",
        opts=opts,
    )


class Advance(pulumi.ComponentResource):
    """Grants for ``vt jobs advance``. The members are tokens of a workflow, not an account."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        state: State,
        member: str,
        after: Sequence[pulumi.Resource],
    ) -> None:
        """Let ``member`` read the state, submit jobs, and write records of jobs."""
        super().__init__("vertextraining:bootstrap:Advance", name)
        opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        gcp.storage.BucketIAMMember(
            f"{name}-state", bucket=state.bucket.name, role=READ_OBJECTS, member=member, opts=opts
        )
        description = "What submitting a slot of a schedule needs; bootstrap/README.md"
        permissions = conditions.of_submitters()
        role = _create_role(f"{name}-role", name, settings, description, permissions, opts)
        _grant(f"{name}-jobs", settings, role.name, member, opts)
        records, title = _in_buckets(settings, CONTROL), "records of jobs"
        _grant(f"{name}-records", settings, WRITE_OBJECTS, member, opts, title, records)
        self.register_outputs({})


class Identity(pulumi.ComponentResource):
    """A service account of CI, with grants on the state bucket, the key and the project."""

    email: pulumi.Output[str]
    account: gcp.serviceaccount.Account

    def __init__(
        self,
        role: Role,
        description: str,
        *,
        settings: Settings,
        state: State,
        github: Federation,
        after: Sequence[pulumi.Resource],
        can_write: bool = False,
    ) -> None:
        """Create the account for workflows whose tokens have this role.

        The account can read the state, and with ``can_write`` also write and encrypt the state.
        """
        name = role.value
        super().__init__("vertextraining:bootstrap:Identity", name)
        self._name, self._settings = name, settings
        self._child = pulumi.ResourceOptions(parent=self, depends_on=after)
        self.account = gcp.serviceaccount.Account(
            f"{name}-account",
            project=settings.project,
            account_id=naming.ci_account_id(name, settings.stack),
            display_name=f"CI: {name} ({settings.stack})",
            description=description,
            opts=self._child,
        )
        self.email = self.account.email
        gcp.storage.BucketIAMMember(
            f"{name}-state",
            bucket=state.bucket.name,
            role=WRITE_OBJECTS if can_write else READ_OBJECTS,
            member=self.account.member,
            opts=self._child,
        )
        gcp.kms.CryptoKeyIAMMember(
            f"{name}-key",
            crypto_key_id=state.key.id,
            role=f"roles/cloudkms.cryptoKey{'EncrypterDecrypter' if can_write else 'Decrypter'}",
            member=self.account.member,
            opts=self._child,
        )
        self.register_outputs({"email": self.email})
        gcp.serviceaccount.IAMMember(
            f"{name}-from-workflows",
            service_account_id=self.account.name,
            role="roles/iam.workloadIdentityUser",
            member=github.principals(role),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[github]),
        )

    def grant_custom_role(
        self, name: str, permissions: Sequence[str], *, condition: str = ""
    ) -> None:
        """Create a custom role with these permissions and grant it; see :meth:`grant_role`."""
        role = _create_role(
            f"{self._name}-{name}-role",
            name,
            self._settings,
            "What the training stack's resource types need; bootstrap/README.md",
            permissions,
            self._child,
        )
        self.grant_role(name, role.name, condition=condition)

    def grant_role(self, name: str, role: pulumi.Input[str], *, condition: str = "") -> None:
        """Grant a role on the project, under ``condition`` (CEL) unless it is empty."""
        member, resource = self.account.member, f"{self._name}-{name}"
        _grant(resource, self._settings, role, member, self._child, name, condition)
