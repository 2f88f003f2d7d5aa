"""The account that Cloud Build builds the stack's images as, and who may start builds.

Owns every grant of that account: it reads sources from the staging bucket, pushes to the stack's
repository and writes its log, and nothing else. Google's default accounts build nothing here: they
may read and write everything in the project. Makes no build: ``vt images build`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.iam import make_grants
from vertex_training.components.identities import account_outputs
from vertex_training.components.registry import Registry
from vertex_training.components.scope import Scope
from vertex_training.components.storage import Storage
from vertex_training.naming import IMAGE_BUILD, STAGING
from vertex_training.plan.stack_grants import build_grants
from vertex_training.settings.model import Settings


class ImageBuilds(pulumi.ComponentResource):
    """The build account, its three grants, and those of the members that start builds."""

    email: pulumi.Output[str]

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        storage: Storage,
        registry: Registry,
        *,
        after: Sequence[pulumi.Resource],
    ) -> None:
        """``after``: APIs that must be enabled."""
        super().__init__("vertextraining:images:ImageBuilds", scope.name, None, scope.opts)
        names = settings.names
        account = gcp.serviceaccount.Account(
            f"{scope.name}-account",
            project=names.project,
            account_id=names.account_id(IMAGE_BUILD),
            display_name=f"Builds of images ({names.stack})",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.email = account.email
        outputs: dict[str, pulumi.Input[str]] = {
            **account_outputs(account, names, IMAGE_BUILD),
            f"b/{names.bucket(STAGING)}": storage.buckets[STAGING].name,
            names.repository_path(): registry.repository_id,
        }
        options = pulumi.ResourceOptions(parent=self)
        make_grants(scope.name, build_grants(settings), options, outputs)
        self.register_outputs({"email": self.email})
