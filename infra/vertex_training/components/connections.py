"""Connections of job machines to a network: peering, an interface, a Shared VPC's host.

Peering makes the connection if it makes one of the ranges. Ranges that all exist belong to an
existing connection, and a network has only one. The network attachment of an interface is the
project's own also where its subnet is the host's of a Shared VPC, as the setup guide has it.

Of a host project, this owns the attachment of the stack's project and the host's APIs, and only
where the stack file says that the host is the stack's to manage. The network owns the grants on the
host's network; ``plan.external_grants`` lists what another team has to do instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.apis import enable_api
from vertex_training.components.ordering import Scope
from vertex_training.naming import Names
from vertex_training.plan.network import NetworkPlan
from vertex_training.settings.network import Attachment, IpRange, Network, SharedVpc


class Peering(pulumi.ComponentResource):
    """The private connection of one network to Google's services."""

    workers: list[pulumi.Input[str]]
    """Addresses of the machines of jobs, as blocks; of existing ranges where they are known."""

    def __init__(
        self,
        name: str,
        *,
        plan: NetworkPlan,
        settings: Network,
        network: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertextraining:network:Peering", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        made = {
            key: self._range(f"{name}-{key}", plan.ranges[key], wanted, plan, network)
            for key, wanted in settings.ranges.items()
            if not wanted.existing
        }
        self.workers = [
            *(_block(address, settings.ranges[key]) for key, address in made.items()),
            *(f"{r.address}/{r.prefix_length}" for r in settings.ranges.values() if _known(r)),
        ]
        if made:
            reserved = [made[key].name if key in made else plan.ranges[key] for key in plan.ranges]
            self._connect(name, network, reserved, plan, settings)
        self.register_outputs({})

    def _range(
        self,
        name: str,
        physical: str,
        wanted: IpRange,
        plan: NetworkPlan,
        network: pulumi.Input[str],
    ) -> gcp.compute.GlobalAddress:
        return gcp.compute.GlobalAddress(
            name,
            project=plan.project,
            name=physical,
            address_type="INTERNAL",
            purpose="VPC_PEERING",
            address=wanted.address,
            prefix_length=wanted.prefix_length,
            network=network,
            opts=self._child,
        )

    def _connect(
        self,
        name: str,
        network: pulumi.Input[str],
        ranges: Sequence[pulumi.Input[str]],
        plan: NetworkPlan,
        settings: Network,
    ) -> None:
        connection = gcp.servicenetworking.Connection(
            f"{name}-connection",
            network=network,
            service="servicenetworking.googleapis.com",
            reserved_peering_ranges=list(ranges),
            # From pulumi-gcp 10.2 on this removes the peering itself where the service still holds
            # it after the last job. 9.35.0 takes any word but ABANDON and PREVENT for DELETE.
            deletion_policy="REMOVE_PEERING",
            opts=self._child,
        )
        if settings.export_custom_routes or settings.import_custom_routes:
            gcp.compute.NetworkPeeringRoutesConfig(
                f"{name}-routes",
                project=plan.project,
                network=plan.name,
                peering=connection.peering,
                export_custom_routes=settings.export_custom_routes,
                import_custom_routes=settings.import_custom_routes,
                opts=self._child,
            )


class PscInterface(pulumi.ComponentResource):
    """One network attachment, unless it exists."""

    def __init__(
        self,
        scope: Scope,
        names: Names,
        settings: Attachment,
        subnet: pulumi.Input[str],
        *,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("vertextraining:network:PscInterface", scope.name, None, scope.opts)
        if not settings.existing:
            gcp.compute.NetworkAttachment(
                f"{scope.name}-attachment",
                project=names.project,
                region=names.region,
                name=names.network(),
                description=f"Training jobs of stack {names.stack}",
                connection_preference=settings.connection_preference,
                subnetworks=[subnet],
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
        self.register_outputs({})


class HostProject(pulumi.ComponentResource):
    """A host project with this service project attached."""

    def __init__(
        self,
        scope: Scope,
        project: str,
        host: SharedVpc,
        apis: Sequence[str],
        *,
        after: Sequence[pulumi.Resource],
    ) -> None:
        """``project`` is the service project; ``apis`` are what its network needs in the host."""
        super().__init__("vertextraining:sharedvpc:HostProject", scope.name, None, scope.opts)
        name, own = scope.name, pulumi.ResourceOptions(parent=self)
        enabled = [enable_api(f"{name}-{api}", api, host.host_project, own) for api in apis]
        before: list[pulumi.Resource] = [*after, *enabled]
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


def _block(address: gcp.compute.GlobalAddress, wanted: IpRange) -> pulumi.Input[str]:
    """The range as a block; Google chooses where it begins unless the stack file sets it."""
    if wanted.address:
        return f"{wanted.address}/{wanted.prefix_length}"
    return pulumi.Output.concat(address.address, f"/{wanted.prefix_length}")


def _known(wanted: IpRange) -> bool:
    return bool(wanted.existing and wanted.address and wanted.prefix_length)
