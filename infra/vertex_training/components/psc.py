"""Private Service Connect interface: the network attachment that the machines of jobs join.

The attachment is the project's own also where its subnet is the host's of a Shared VPC, as the
setup guide has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.naming import Names
from vertex_training.settings.network import Attachment


class PscInterface(pulumi.ComponentResource):
    """One network attachment, unless it exists."""

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        settings: Attachment,
        subnet: pulumi.Input[str],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertextraining:network:PscInterface", name, None, opts)
        if not settings.existing:
            gcp.compute.NetworkAttachment(
                f"{name}-attachment",
                project=names.project,
                region=names.region,
                name=names.network(),
                description=f"Training jobs of stack {names.stack}",
                connection_preference=settings.connection_preference,
                subnetworks=[subnet],
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
        self.register_outputs({})
