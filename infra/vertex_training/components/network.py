"""Network of jobs: network, subnet, NAT, firewall rules, and the connection of job machines.

Existing parts are not created. The inner component ``peering`` or ``psc`` connects jobs: a change
of mode replaces only this component. Firewall rules allow traffic between job machines, and the
traffic in ``allow``. Existing ranges belong to an existing peering connection. A network attachment
is in the stack's project even if the subnet is in the host project of a Shared VPC, as in the setup
guide. In a host project with ``manageHost``, this module attaches the stack's project and enables
APIs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, Unpack, overload

import pulumi
import pulumi_gcp as gcp
from pulumi import Input, Output

from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.iam import Apis, enable_api, log_external_grants, make_grants
from vertex_training.components.ordering import Resources, Scope
from vertex_training.components.sections import NetworkArgs, SharedVpcArgs
from vertex_training.errors import Problem
from vertex_training.naming import Names
from vertex_training.plan.network import NetworkPlan, network_grants
from vertex_training.settings.model import Settings
from vertex_training.settings.network import Attachment, IpRange, SharedVpc
from vertex_training.settings.network import Network as NetworkSettings
from vertex_training.settings.network import Subnet as SubnetSettings
from vertex_training.stack import Stack


class Network(pulumi.ComponentResource):
    """Network with the resources that jobs in one region need."""

    path: Output[str]
    """Full name (``projects/P/global/networks/N``), known in a preview."""

    def __init__(
        self, scope: Scope, stack_settings: Settings, plan: NetworkPlan, *, after: Resources
    ) -> None:
        super().__init__("vertextraining:network:Network", scope.name, None, scope.opts)
        settings, name = stack_settings.network, scope.name
        self._name, self._names, self._plan = name, stack_settings.names, plan
        self._settings = settings
        self._opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        self._id: Input[str] = plan.id
        self.path = pulumi.Output.from_input(plan.id)
        if not settings.existing:
            network = gcp.compute.Network(
                f"{name}-vpc",
                project=plan.project,
                name=plan.name,
                description=f"Training jobs of stack {self._names.stack}",
                auto_create_subnetworks=False,
                routing_mode="REGIONAL",
                opts=self._opts,
            )
            self._id, self.path = network.id, network.name.apply(lambda _: plan.id)
        subnet: Input[str] = plan.subnet
        waits: list[pulumi.Resource] = [*after]
        if settings.subnet and not settings.subnet.existing:
            subnetwork = self._subnet(settings.subnet)
            waits.append(subnetwork)
            subnet = subnetwork.id
        options = pulumi.ResourceOptions(parent=self, depends_on=waits)
        granted = make_grants(name, network_grants(stack_settings, plan), options)
        workers: Sequence[Input[str]]
        if plan.mode == "peering":
            inner = f"{name}-peering"
            workers = Peering(inner, plan, settings, network=self._id, opts=self._opts).workers
        else:
            # Attaching a subnet of another project requires the right to use it.
            grants, inner = [*after, *granted.values()], Scope(f"{name}-psc", self)
            PscInterface(inner, self._names, settings.attachment, subnet, after=grants)
            workers = [settings.subnet.range] if settings.subnet and settings.subnet.range else []
        self._rules(workers)
        if settings.nat:
            self._nat(subnet)
        self.register_outputs({"network": self._id})

    def _subnet(self, settings: SubnetSettings) -> "gcp.compute.Subnetwork":
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

    def _rules(self, workers: Sequence[Input[str]]) -> None:
        subnet, allowed = self._settings.subnet, gcp.compute.FirewallAllowArgs
        rules: list[tuple[str, str, list[gcp.compute.FirewallAllowArgs], list[str]]] = []
        if self._plan.mode == "psc" and subnet and subnet.range and not subnet.existing:
            protocols = [allowed(protocol=name) for name in ("tcp", "udp", "icmp")]
            what = "Machines of training jobs among themselves"
            rules.append(("workers", what, protocols, [subnet.range]))
        for key, allow in self._settings.allow.items():
            traffic = allowed(protocol=allow.protocol, ports=allow.ports or None)
            what = f"Machines of training jobs to {key}"
            rules.append((key, what, [traffic], allow.destination_ranges))
        for key, what, allows, destinations in rules:
            gcp.compute.Firewall(
                f"{self._name}-allow-{key}",
                project=self._plan.project,
                name=self._names.firewall(key),
                description=what,
                network=self._id,
                direction="INGRESS",
                allows=allows,
                source_ranges=list(workers),
                destination_ranges=destinations,
                opts=self._opts,
            )

    def _nat(self, subnet: Input[str]) -> None:
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
            subnetworks=[{"name": subnet, "source_ip_ranges_to_nats": ["ALL_IP_RANGES"]}],
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=self._opts,
        )


def make_network(scope: Scope, stack: Stack, apis: Apis) -> list[Network]:
    """Declare the network in its owner's project; return an empty list without a network."""
    settings, plan, host = stack.declared, stack.network, stack.declared.shared_vpc
    if plan is None:
        return []
    needed = ["compute", *(["servicenetworking"] if plan.mode == "peering" else [])]
    after = apis.on(*needed, "cloudresourcemanager")
    waits = [*after, apis.agent]
    if host and host.manage_host:
        inner = scope.child("host")
        waits.append(HostProject(inner, settings.project, host, needed, after=after))
    return [Network(scope.child("network"), settings, plan, after=waits)]


class Peering(pulumi.ComponentResource):
    """Private services connection of a network."""

    workers: list[pulumi.Input[str]]
    """Address blocks of job machines; of existing ranges only those with ``address``."""

    def __init__(
        self,
        name: str,
        plan: NetworkPlan,
        settings: NetworkSettings,
        *,
        network: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertextraining:network:Peering", name, None, opts)
        self._name, self._plan, self._settings, self._network = name, plan, settings, network
        self._child = pulumi.ResourceOptions(parent=self)
        addresses = {
            key: gcp.compute.GlobalAddress(
                f"{name}-{key}",
                project=plan.project,
                name=plan.ranges[key],
                address_type="INTERNAL",
                purpose="VPC_PEERING",
                address=range_.address,
                prefix_length=range_.prefix_length,
                network=network,
                opts=self._child,
            )
            for key, range_ in settings.ranges.items()
            if not range_.existing
        }
        self.workers = [
            *(_block(address, settings.ranges[key]) for key, address in addresses.items()),
            *(
                f"{r.address}/{r.prefix_length}"
                for r in settings.ranges.values()
                if r.existing and r.address and r.prefix_length
            ),
        ]
        if addresses:
            reserved: list[pulumi.Input[str]] = [
                addresses[key].name if key in addresses else plan.ranges[key] for key in plan.ranges
            ]
            self._connect(reserved)
        self.register_outputs({})

    def _connect(self, ranges: list[pulumi.Input[str]]) -> None:
        settings = self._settings
        connection = gcp.servicenetworking.Connection(
            f"{self._name}-connection",
            network=self._network,
            service="servicenetworking.googleapis.com",
            reserved_peering_ranges=ranges,
            # From pulumi-gcp 10.2 on, this removes the peering even if the service still uses it
            # after the last job. 9.35.0 treats any word but ABANDON and PREVENT as DELETE.
            deletion_policy="REMOVE_PEERING",
            opts=self._child,
        )
        if settings.export_custom_routes or settings.import_custom_routes:
            gcp.compute.NetworkPeeringRoutesConfig(
                f"{self._name}-routes",
                project=self._plan.project,
                network=self._plan.name,
                peering=connection.peering,
                export_custom_routes=settings.export_custom_routes,
                import_custom_routes=settings.import_custom_routes,
                opts=self._child,
            )


class PscInterface(pulumi.ComponentResource):
    """A network attachment, unless the stack file names an existing attachment."""

    def __init__(
        self,
        scope: Scope,
        names: Names,
        settings: Attachment,
        subnet: pulumi.Input[str],
        *,
        after: Resources,
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
    """Attachment of the stack's project to a Shared VPC host project."""

    def __init__(
        self, scope: Scope, project: str, host: SharedVpc, apis: Sequence[str], *, after: Resources
    ) -> None:
        """Attach service project ``project`` to the host project, and enable ``apis`` there."""
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


def _block(address: "gcp.compute.GlobalAddress", settings: IpRange) -> pulumi.Input[str]:
    """Return a range as an address block. Google chooses a missing address."""
    if settings.address:
        return f"{settings.address}/{settings.prefix_length}"
    return pulumi.Output.concat(address.address, f"/{settings.prefix_length}")


#: Arguments of the component: fields of ``network``, and keys of a stack file.
FIELDS: Final = tuple(NetworkArgs.__annotations__)
SETTINGS: Final = ("project", "project_number", "region", "shared_vpc")


class TrainingNetworkArgs(NetworkArgs):
    """Arguments of :class:`TrainingNetwork`. ``mode`` is ``peering`` or ``psc``."""

    project: NotRequired[Input[str]]
    """Id of the project of the jobs; default: project of the gcp provider."""
    project_number: Input[str]
    """Number of the project, which is part of a peered network's name in jobs."""
    region: NotRequired[Input[str]]
    """Region of the jobs; default: region of the gcp provider."""
    environment: NotRequired[Input[str]]
    """Suffix of the name (``training-ENVIRONMENT``); default: the Pulumi stack's name."""
    shared_vpc: NotRequired[Input[SharedVpcArgs]]
    """Shared VPC: the project that owns the network, if it differs from the jobs' project."""


class TrainingNetwork(pulumi.ComponentResource):
    """Network of jobs, by VPC peering or Private Service Connect interfaces.

    Creates the network, unless it exists, with subnet, ranges and firewall rules. Logs grants that
    the owner of another project must make. Enables Compute Engine, Vertex AI, Resource Manager and,
    for peering, Service Networking.

    Example::

        network = TrainingNetwork(
            "network",
            {
                "project": "local-training",
                "project_number": "971240389164",
                "region": "us-central1",
                "mode": "psc",
                "subnet": {"range": "10.20.0.0/24"},
            },
        )
        pulumi.export("attachment", network.attachment)
    """

    path: Output[str]
    """Full name (``projects/P/global/networks/N``), known in a preview."""
    network: Output[str]
    """Value of ``network`` in jobs, with the project number. Empty unless ``mode`` is
    ``peering``."""
    attachment: Output[str]
    """Name of the network attachment. Empty unless ``mode`` is ``psc``."""
    interface: Output[Mapping[str, Any]]
    """Value of ``pscInterfaceConfig`` in jobs. Empty unless ``mode`` is ``psc``."""

    @overload
    def __init__(self, name: str, /, args: TrainingNetworkArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingNetworkArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingNetworkArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Declare the network. Raises ArgumentsError with every mistake."""
        arguments = Arguments(f"TrainingNetwork '{name}'", opts)
        named = arguments.named(args, keywords, TrainingNetworkArgs.__annotations__)
        section = arguments.section(NetworkSettings, named, FIELDS, at=("network",))
        raw = arguments.section(Settings, named, SETTINGS) | {"network": section}
        if section.get("mode", "none") == "none":
            hint = "pass peering or psc; jobs without a network do not need this component"
            arguments.add([Problem("mode is missing", hint=hint, path=("network", "mode"))])
        stack = arguments.stack(raw, arguments.environment(named))
        super().__init__("vertex-training:index:TrainingNetwork", name, arguments.inputs, opts)
        plan, settings = stack.network, stack.declared
        assert plan is not None  # the mode is not none
        peering = plan.mode == "peering"
        needed = ["compute", "aiplatform", "cloudresourcemanager"]
        needed += ["servicenetworking"] if peering else []
        needed += ["dns"] if settings.network.dns_peering else []
        scope, waits = Scope(name, self), arguments.prerequisites()
        apis = Apis(scope.child("apis"), settings.project, needed, after=waits)
        make_network(scope, stack, apis)
        log_external_grants(stack, {}, self)
        outputs = {
            "path": plan.id,
            "network": plan.path if peering else "",
            "attachment": plan.attachment,
            "interface": {} if peering else plan.interface,
        }
        set_outputs(self, outputs)
