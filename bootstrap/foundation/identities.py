"""An account of CI: which workflows become it, and what it may do.

``plan`` looks: it reads settings and IAM policies, never what objects or secrets hold but for the
buckets it is told, and it cannot submit a job or act as any account. ``deploy`` changes what the
stacks are made of. Neither has a key; both are only ever impersonated by a workflow's own token.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from foundation.federation import Federation
from foundation.settings import Settings
from foundation.state import State

IMPERSONATE = "roles/iam.workloadIdentityUser"
READ_OBJECTS = "roles/storage.objectViewer"
WRITE_OBJECTS = "roles/storage.objectUser"
DECRYPT = "roles/cloudkms.cryptoKeyDecrypter"
ENCRYPT = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


class Identity(pulumi.ComponentResource):
    """One account with its grants on the project, the state and the key."""

    email: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        description: str,
        state: State,
        state_role: str,
        key_role: str,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``state_role`` is given on the state bucket, ``key_role`` on the key of its secrets.

        ``after``: the APIs that must be on.
        """
        super().__init__("vertextraining:bootstrap:Identity", name, None, opts)
        self._name, self._settings = name, settings
        self._child = pulumi.ResourceOptions(parent=self, depends_on=after)
        self._account = gcp.serviceaccount.Account(
            f"{name}-account",
            project=settings.project,
            account_id=f"ci-{name}-{settings.stack}",
            display_name=f"CI: {name} ({settings.stack})",
            description=description,
            opts=self._child,
        )
        self.email = self._account.email
        gcp.storage.BucketIAMMember(
            f"{name}-state",
            bucket=state.bucket.name,
            role=state_role,
            member=self._account.member,
            opts=self._child,
        )
        gcp.kms.CryptoKeyIAMMember(
            f"{name}-key",
            crypto_key_id=state.key.id,
            role=key_role,
            member=self._account.member,
            opts=self._child,
        )
        self.register_outputs({"email": self.email})

    def becomes(self, subjects: Sequence[str], federation: Federation) -> None:
        """Let the workflows whose tokens have one of these subjects become this account."""
        for sub in subjects:
            gcp.serviceaccount.IAMMember(
                f"{self._name}-from-{sub}",
                service_account_id=self._account.name,
                role=IMPERSONATE,
                member=federation.principal(sub),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[federation]),
            )

    def may(self, what: str, permissions: Sequence[str], *, only: str = "") -> None:
        """Give it a role of its own, of exactly these permissions; ``only``: a CEL condition."""
        role = gcp.projects.IAMCustomRole(
            f"{self._name}-{what}-role",
            project=self._settings.project,
            # Ids of roles have no dashes, and stay taken for weeks after a role is deleted.
            role_id=f"training_{what}_{self._settings.stack.replace('-', '_')}",
            title=f"Training: {what} ({self._settings.stack})",
            description="What the training stack's resource types need; docs/bootstrap.md",
            permissions=list(permissions),
            stage="GA",
            opts=self._child,
        )
        self.has(what, role.name, only=only)

    def has(self, what: str, role: pulumi.Input[str], *, only: str = "") -> None:
        """Give it a role on the project; ``only``: a CEL condition."""
        condition = gcp.projects.IAMMemberConditionArgs(title=what, expression=only)
        gcp.projects.IAMMember(
            f"{self._name}-{what}",
            project=self._settings.project,
            role=role,
            member=self._account.member,
            condition=condition if only else None,
            opts=self._child,
        )
