"""What the host project of a Shared VPC needs before jobs of this project use its network.

Owns the attachment of this project to the host and the host's APIs, and only where the stack file
says that the host is the stack's to manage. The network owns the grants on the host's network;
``plan.external_grants`` lists what another team has to do instead.
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from vertex_training.settings.network import SharedVpc


class HostProject(pulumi.ComponentResource):
    """A host project with this service project attached."""

    def __init__(
        self,
        name: str,
        *,
        project: str,
        host: SharedVpc,
        peering: bool,
        after: list[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``project`` is the service project; ``peering``: whether its network is peered."""
        super().__init__("vertextraining:sharedvpc:HostProject", name, None, opts)
        wanted = ["compute", *(["servicenetworking"] if peering else [])]
        apis = [
            gcp.projects.Service(
                f"{name}-{api}",
                project=host.host_project,
                service=f"{api}.googleapis.com",
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in wanted
        ]
        before: list[pulumi.Resource] = [*after, *apis]
        if host.enable_host:
            before.append(
                gcp.compute.SharedVPCHostProject(
                    f"{name}-host",
                    project=host.host_project,
                    opts=pulumi.ResourceOptions(parent=self, depends_on=before),
                )
            )
        gcp.compute.SharedVPCServiceProject(
            f"{name}-attached",
            host_project=host.host_project,
            service_project=project,
            opts=pulumi.ResourceOptions(parent=self, depends_on=before),
        )
        self.register_outputs({})
