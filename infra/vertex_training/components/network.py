"""The network that jobs reach: the network itself, a subnet, its ways out, and its rules.

Owns the parts that the stack makes; a part given by ``existing`` is only used. Jobs come in through
one of two inner components: ``peering`` or ``psc``. The network keeps its name in the state when
the mode changes, so a change of mode replaces the inner component alone.

Allows nothing into the network but the machines of jobs among themselves and what ``allow`` lists:
a network has no rules of its own, and without one nothing comes in.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.iam import make_grants
from vertex_training.components.peering import Peering
from vertex_training.components.psc import PscInterface
from vertex_training.naming import Names
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.network import NetworkPlan
from vertex_training.settings.network import Allow
from vertex_training.settings.network import Network as NetworkSettings
from vertex_training.settings.network import Subnet as SubnetSettings


class Network(pulumi.ComponentResource):
    """One network with everything that jobs of one region need in it."""

    path: pulumi.Output[str]
    """``projects/P/global/networks/N``, known before it exists."""

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        plan: NetworkPlan,
        settings: NetworkSettings,
        grants: Sequence[GrantRequest],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``grants``: those that come with it; the stack makes its own."""
        super().__init__("vertextraining:network:Network", name, None, opts)
        self._name, self._names, self._plan, self._settings = name, names, plan, settings
        self._opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        self._id: pulumi.Input[str] = plan.id
        self.path = pulumi.Output.from_input(plan.id)
        if not settings.existing:
            network = self._network()
            self._id, self.path = network.id, network.name.apply(lambda _: plan.id)
        subnet: pulumi.Input[str] = plan.subnet
        waits: list[pulumi.Resource] = [*after]
        if settings.subnet and not settings.subnet.existing:
            made = self._subnet(settings.subnet)
            waits.append(made)
            subnet = made.id
        options = pulumi.ResourceOptions(parent=self, depends_on=waits)
        granted = make_grants(name, grants, options)
        if plan.mode == "peering":
            workers = self._peering()
        else:
            # A subnet of another project can be attached by accounts that may use it.
            workers = self._interface(subnet, [*after, *granted.values()])
        self._rules(workers)
        if settings.nat:
            self._nat(subnet)
        self.register_outputs({"network": self._id})

    def _network(self) -> gcp.compute.Network:
        return gcp.compute.Network(
            f"{self._name}-vpc",
            project=self._plan.project,
            name=self._plan.name,
            description=f"Training jobs of stack {self._names.stack}",
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            opts=self._opts,
        )

    def _peering(self) -> Sequence[pulumi.Input[str]]:
        """Peer with Google's network; the address ranges of the machines of jobs."""
        peering = Peering(
            f"{self._name}-peering",
            plan=self._plan,
            settings=self._settings,
            network=self._id,
            opts=self._opts,
        )
        return peering.workers

    def _interface(
        self, subnet: pulumi.Input[str], after: Sequence[pulumi.Resource]
    ) -> Sequence[pulumi.Input[str]]:
        """Make the network attachment; the address ranges of the machines of jobs."""
        settings = self._settings
        PscInterface(
            f"{self._name}-psc",
            names=self._names,
            settings=settings.attachment,
            subnet=subnet,
            after=after,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return [settings.subnet.range] if settings.subnet and settings.subnet.range else []

    def _subnet(self, settings: SubnetSettings) -> gcp.compute.Subnetwork:
        log = gcp.compute.SubnetworkLogConfigArgs(
            aggregation_interval="INTERVAL_10_MIN",
            flow_sampling=0.5,
            metadata="INCLUDE_ALL_METADATA",
        )
        return gcp.compute.Subnetwork(
            f"{self._name}-subnet",
            project=self._plan.project,
            region=self._names.region,
            name=self._names.network(),
            network=self._id,
            ip_cidr_range=settings.range,
            private_ip_google_access=settings.private_ip_google_access,
            log_config=log,
            opts=self._opts,
        )

    def _rules(self, workers: Sequence[pulumi.Input[str]]) -> None:
        """Rules about the machines of jobs, which have their addresses in ``workers``."""
        subnet = self._settings.subnet
        if self._plan.mode == "psc" and subnet and subnet.range and not subnet.existing:
            among = gcp.compute.FirewallAllowArgs
            protocols = [among(protocol=name) for name in ("tcp", "udp", "icmp")]
            what = "Machines of training jobs among themselves"
            self._rule("workers", what, protocols, workers, [subnet.range])
        for key, allow in self._settings.allow.items():
            what = f"Machines of training jobs to {key}"
            self._rule(key, what, [_allowed(allow)], workers, allow.destination_ranges)

    def _rule(
        self,
        key: str,
        description: str,
        allows: list[gcp.compute.FirewallAllowArgs],
        sources: Sequence[pulumi.Input[str]],
        destinations: list[str],
    ) -> None:
        gcp.compute.Firewall(
            f"{self._name}-allow-{key}",
            project=self._plan.project,
            name=self._names.firewall(key),
            description=description,
            network=self._id,
            direction="INGRESS",
            allows=allows,
            source_ranges=list(sources),
            destination_ranges=destinations,
            opts=self._opts,
        )

    def _nat(self, subnet: pulumi.Input[str]) -> None:
        router = gcp.compute.Router(
            f"{self._name}-router",
            project=self._plan.project,
            region=self._names.region,
            name=self._names.network(),
            network=self._id,
            opts=self._opts,
        )
        gcp.compute.RouterNat(
            f"{self._name}-nat",
            project=self._plan.project,
            region=self._names.region,
            name=self._names.network(),
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                gcp.compute.RouterNatSubnetworkArgs(
                    name=subnet, source_ip_ranges_to_nats=["ALL_IP_RANGES"]
                )
            ],
            log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=self._opts,
        )


def _allowed(allow: Allow) -> gcp.compute.FirewallAllowArgs:
    return gcp.compute.FirewallAllowArgs(protocol=allow.protocol, ports=allow.ports or None)
