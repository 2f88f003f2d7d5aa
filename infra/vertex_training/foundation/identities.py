"""A service account of CI, the grants to it, and the workflows that may impersonate it.

``preview`` and ``plan`` read settings and IAM policies. They cannot read secrets, submit jobs, or
act as another account. ``preview`` runs unreviewed code: it reads only the objects of Pulumi's
state, and exists only with ``pullRequests``. ``plan`` also reads objects in the buckets that the
settings list. ``deploy`` creates, changes and deletes the stacks' resources. The accounts have no
keys: workflows impersonate them with their own tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import naming
from vertex_training.foundation import conditions
from vertex_training.foundation.federation import Federation, Role
from vertex_training.foundation.settings import Settings
from vertex_training.foundation.state import State
from vertex_training.naming import CONTROL

IMPERSONATE: Final = "roles/iam.workloadIdentityUser"
#: Role for preflights, granted on projects:
#: https://docs.cloud.google.com/iam/docs/roles-permissions/orgpolicy
READ_ORG_POLICIES: Final = "roles/orgpolicy.policyViewer"
READ_OBJECTS: Final = "roles/storage.objectViewer"
WRITE_OBJECTS: Final = "roles/storage.objectUser"
DECRYPT: Final = "roles/cloudkms.cryptoKeyDecrypter"
ENCRYPT_DECRYPT: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


class Advance(pulumi.ComponentResource):
    """Grants for ``vt jobs advance``, made to the tokens of its workflow instead of an account."""

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
        role = gcp.projects.IAMCustomRole(
            f"{name}-role",
            project=settings.project,
            role_id=f"training_{name}_{settings.stack.replace('-', '_')}",
            title=f"Training: {name} ({settings.stack})",
            description="What submitting a slot of a schedule needs; bootstrap/README.md",
            permissions=conditions.of_submitters(),
            stage="GA",
            opts=opts,
        )
        control = settings.names.bucket(CONTROL)
        records = f"resource.name.startsWith('projects/_/buckets/{control}/objects/')"
        when = gcp.projects.IAMMemberConditionArgs(title="records of jobs", expression=records)
        for key, granted, condition in (
            ("jobs", role.name, None),
            ("records", pulumi.Output.from_input(WRITE_OBJECTS), when),
        ):
            gcp.projects.IAMMember(
                f"{name}-{key}",
                project=settings.project,
                role=granted,
                member=member,
                condition=condition,
                opts=opts,
            )
        self.register_outputs({})


class Identity(pulumi.ComponentResource):
    """A service account with its grants on the state bucket, the key and the project."""

    email: pulumi.Output[str]
    account: gcp.serviceaccount.Account

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
    ) -> None:
        """Create the account; grant ``state_role`` on the state bucket and ``key_role`` on the key.

        ``after``: resources to wait for, such as enabled APIs.
        """
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
        self._grant_on_state(state, state_role, key_role)
        self.register_outputs({"email": self.email})

    def _grant_on_state(self, state: State, role: str, key_role: str) -> None:
        gcp.storage.BucketIAMMember(
            f"{self._name}-state",
            bucket=state.bucket.name,
            role=role,
            member=self.account.member,
            opts=self._child,
        )
        gcp.kms.CryptoKeyIAMMember(
            f"{self._name}-key",
            crypto_key_id=state.key.id,
            role=key_role,
            member=self.account.member,
            opts=self._child,
        )

    def allow_impersonation(self, role: Role, federation: Federation) -> None:
        """Let workflows whose tokens have this role impersonate the account."""
        gcp.serviceaccount.IAMMember(
            f"{self._name}-from-workflows",
            service_account_id=self.account.name,
            role=IMPERSONATE,
            member=federation.principals(role),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[federation]),
        )

    def grant_custom_role(
        self, name: str, permissions: Sequence[str], *, condition: str = ""
    ) -> None:
        """Create a custom role with these permissions and grant it; see :meth:`grant_role`."""
        role = gcp.projects.IAMCustomRole(
            f"{self._name}-{name}-role",
            project=self._settings.project,
            # Ids of roles have no dashes, and are reserved for weeks after a role is deleted.
            role_id=f"training_{name}_{self._settings.stack.replace('-', '_')}",
            title=f"Training: {name} ({self._settings.stack})",
            description="What the training stack's resource types need; bootstrap/README.md",
            permissions=list(permissions),
            stage="GA",
            opts=self._child,
        )
        self.grant_role(name, role.name, condition=condition)

    def grant_role(self, name: str, role: pulumi.Input[str], *, condition: str = "") -> None:
        """Grant a role on the project, under ``condition`` (CEL) unless it is empty."""
        when = gcp.projects.IAMMemberConditionArgs(title=name, expression=condition)
        gcp.projects.IAMMember(
            f"{self._name}-{name}",
            project=self._settings.project,
            role=role,
            member=self.account.member,
            condition=when if condition else None,
            opts=self._child,
        )
