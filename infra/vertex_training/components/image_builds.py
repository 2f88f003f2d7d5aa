"""The account that Cloud Build builds the stack's images as, and who may start builds.

Owns every grant of that account: it reads sources from the staging bucket, pushes to the stack's
repository and writes its log, and nothing else. Google's default accounts build nothing here: they
may read and write everything in the project. Makes no build: ``vt images build`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.iam import make_grants
from vertex_training.components.identities import account_outputs
from vertex_training.components.registry import Registry
from vertex_training.components.storage import Storage
from vertex_training.naming import IMAGE_BUILD, STAGING, Names
from vertex_training.plan.grants import GrantRequest


class ImageBuilds(pulumi.ComponentResource):
    """The build account, its three grants, and those of the members that start builds."""

    email: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        grants: Iterable[GrantRequest],
        storage: Storage,
        registry: Registry,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: APIs that must be enabled."""
        super().__init__("vertextraining:images:ImageBuilds", name, None, opts)
        account = gcp.serviceaccount.Account(
            f"{name}-account",
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
        make_grants(name, grants, pulumi.ResourceOptions(parent=self), outputs)
        self.register_outputs({"email": self.email})
