"""Containers of secrets in Secret Manager.

Never holds a value: a value in a Pulumi program is a value in its state. Add one with
``gcloud secrets versions add NAME --data-file=-``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from infra.naming import Names
from infra.settings.model import Secret


class Secrets(pulumi.ComponentResource):
    """All secrets of a stack, replicated in its region only."""

    paths: dict[str, pulumi.Output[str]]
    """``projects/P/secrets/S``, the id of each. Known before it exists, so that a preview shows
    what a grant will be on."""

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        labels: Mapping[str | None, Mapping[str, str]],
        secrets: Mapping[str, Secret],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``labels`` are by team; None has those of what no team owns."""
        super().__init__("vertextraining:secrets:Secrets", name, None, opts)
        replica = gcp.secretmanager.SecretReplicationUserManagedReplicaArgs(location=names.region)
        made = {
            key: gcp.secretmanager.Secret(
                f"{name}-{key}",
                project=names.project,
                secret_id=names.secret_id(key),
                replication=gcp.secretmanager.SecretReplicationArgs(
                    user_managed=gcp.secretmanager.SecretReplicationUserManagedArgs(
                        replicas=[replica]
                    )
                ),
                annotations={"description": secret.description} if secret.description else None,
                labels=names.labels(labels[secret.team]),
                opts=pulumi.ResourceOptions(parent=self, depends_on=after, protect=secret.protect),
            )
            for key, secret in secrets.items()
            if not secret.existing
        }
        # `apply` keeps what uses a path after its secret.
        self.paths = {
            key: made[key].secret_id.apply(lambda _, key=key: names.secret(key))
            if key in made
            else pulumi.Output.from_input(names.secret(key))
            for key in secrets
        }
        self.register_outputs({"secrets": self.paths})
