"""Secrets in Secret Manager, without values.

A value in a Pulumi program would be in its state. Add a value with
``gcloud secrets versions add NAME --data-file=-``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.ordering import Scope, child_options
from vertex_training.settings.model import Settings


class Secrets(pulumi.ComponentResource):
    """Secrets of a stack, replicated only in its region."""

    paths: dict[str, pulumi.Output[str]]
    """Full names (``projects/P/secrets/S``), known in a preview, so that previews show granted
    resources."""

    def __init__(
        self, scope: Scope, settings: Settings, *, after: Sequence[pulumi.Resource]
    ) -> None:
        super().__init__("vertextraining:secrets:Secrets", scope.name, None, scope.opts)
        names, labels = settings.names, settings.labels_by_team
        replication = _replication(names.region, settings.key_for("secrets"))
        created = {
            key: gcp.secretmanager.Secret(
                f"{scope.name}-{key}",
                project=names.project,
                secret_id=names.secret_id(key),
                replication=replication,
                annotations={"description": secret.description} if secret.description else None,
                labels=names.labels({**labels[secret.team], **secret.labels}),
                opts=child_options(self, after, protect=secret.protect),
            )
            for key, secret in settings.secrets.items()
            if not secret.existing
        }
        # `apply` makes users of a path depend on the secret.
        self.paths = {
            key: created[key].secret_id.apply(lambda _, key=key: names.secret(key))
            if key in created
            else pulumi.Output.from_input(names.secret(key))
            for key in settings.secrets
        }
        self.register_outputs({"secrets": self.paths})


def _replication(region: str, key: str | None) -> gcp.secretmanager.SecretReplicationArgs:
    """Return replication in one region, encrypted with ``key`` or Google's key."""
    managed = gcp.secretmanager
    encryption = (
        managed.SecretReplicationUserManagedReplicaCustomerManagedEncryptionArgs(kms_key_name=key)
        if key
        else None
    )
    replica = managed.SecretReplicationUserManagedReplicaArgs(
        location=region, customer_managed_encryption=encryption
    )
    return managed.SecretReplicationArgs(
        user_managed=managed.SecretReplicationUserManagedArgs(replicas=[replica])
    )
