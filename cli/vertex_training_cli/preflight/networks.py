"""Checks of the network that jobs use: addresses, host project, peering and DNS.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/service-infrastructure/docs/service-networking/reference/rest/v1/services.connections/list
https://docs.cloud.google.com/dns/docs/reference/rest/v1/managedZones/list
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from vertex_training.plan.network import NetworkPlan
from vertex_training.stack import Stack
from vertex_training_cli import rest
from vertex_training_cli.preflight.context import Answer, PreflightContext, answered, question

SERVICE: Final = "servicenetworking.googleapis.com"
#: Number of addresses that Google reserves in a subnet:
#: https://docs.cloud.google.com/vpc/docs/subnets
KEPT: Final = 4
Items = list[dict[str, Any]]


def check_network(context: PreflightContext) -> Iterator[Answer]:
    """Check the network of jobs. A stack without a network has no answers."""
    plan = context.declared.stack.network
    if plan is None:
        return
    if plan.host:
        yield from _ask_host(context, plan.host.host_project)
    yield from _ask_network(context, plan)
    if path := context.declared.stack.settings.network.attachment.existing:
        yield from _ask_attachment(context, path)
    for peering in plan.dns_peering:
        yield from _ask_zones(context, peering)


@answered
def _ask_network(context: PreflightContext, plan: NetworkPlan) -> Iterator[Answer]:
    asked = question(plan.id, "existence of the network")
    network = context.client.get(rest.NETWORK, asked, plan.id)
    if context.declared.stack.settings.network.existing:
        meets = "resources and jobs in the network are refused"
        mend = "set network.existing to an existing network"
        yield asked.refused("no", meets, mend) if network is None else asked.ok("yes")
    if network is not None:
        yield from _ask_addresses(context, plan)
        if plan.mode == "peering":
            yield from _ask_connection(context, plan, network)


@answered
def _ask_host(context: PreflightContext, host: str) -> Answer:
    asked = question(f"project {context.project}", "host project of the Shared VPC")
    host_project = context.client.get(rest.SHARED_VPC_HOST, asked, context.project)
    name = str((host_project or {}).get("name", ""))
    settings = context.declared.stack.settings.shared_vpc
    attach = f"gcloud compute shared-vpc associated-projects add {context.project}"
    attach += f" --host-project={host}"
    if name == host:
        return asked.ok(host)
    if name:
        meets = "the attachment is refused: a project has only one host project"
        detach = attach.replace(" add ", " remove ").replace(host, name)
        return asked.refused(name, meets, f"run `{detach}`, or set sharedVpc.hostProject to {name}")
    if settings and settings.manage_host:
        return asked.ok("none: the stack will attach the project to the host project")
    return asked.refused("none", f"jobs cannot use networks of {host}", attach)


@answered
def _ask_addresses(context: PreflightContext, plan: NetworkPlan) -> Iterator[Answer]:
    settings = context.declared.stack.settings.network
    new_blocks = list(wanted_blocks(context.declared.stack))
    existing = bool(settings.subnet and settings.subnet.existing)
    if not new_blocks and not existing:
        return
    asked = question(plan.id, "addresses in the network")
    lists = [
        context.client.items(read, asked, plan.project)
        for read in (rest.SUBNETWORKS, rest.ADDRESSES, rest.ROUTES)
    ]
    held = list(held_blocks(plan.id, *lists))
    for address in new_blocks:
        asked = question(address.what, f"free addresses {address.block} in {plan.id}")
        if conflicts := [other.what for other in in_the_way(address, held)]:
            meets = "the creation is refused because of conflicting addresses"
            mend = (
                "choose other addresses in the stack file, or list the used block in network.avoid"
            )
            yield asked.refused(f"used by {', '.join(conflicts)}", meets, mend)
        else:
            yield asked.ok("free")
    if existing:
        yield _judge_subnet(context, plan, lists[0])


def _judge_subnet(context: PreflightContext, plan: NetworkPlan, subnets: Items) -> Answer:
    asked = question(plan.subnet, "existence and addresses of the subnet")
    subnet = next((s for s in subnets if str(s.get("selfLink")).endswith(f"/{plan.subnet}")), None)
    if subnet is None:
        return asked.refused(
            "no subnet", "the attachment is refused", "set network.subnet.existing to a subnet"
        )
    link = str(subnet.get("network", ""))
    if not link.endswith(plan.id):
        meets = "the attachment is not in the stack's network"
        mend = f"set network.existing to {link[link.find('projects/') :]}"
        return asked.refused(f"in network {link.rpartition('/')[2]}", meets, mend)
    block = Block(str(subnet["ipCidrRange"]), strict=False)
    free, machines = block.num_addresses - KEPT, _machines(context)
    if machines > free:
        meets = f"jobs run on up to {machines} machines at a time: some machines get no address"
        return asked.warning(f"{block}: {free} addresses", meets, "use a larger subnet")
    return asked.ok(f"{block}: {free} addresses for up to {machines} machines of jobs")


def _machines(context: PreflightContext) -> int:
    replicas = [
        sum(int(pool.get("replicaCount", 1)) for pool in spec.get("workerPoolSpecs") or () if pool)
        * int(request.message.get("parallelTrialCount", 1))
        for request in context.declared.requests.values()
        if (spec := request.trial["jobSpec"]).get("pscInterfaceConfig")
    ]
    at_once = context.declared.stack.settings.network.parallel_jobs
    return sum(sorted(replicas, reverse=True)[:at_once])


@answered
def _ask_connection(
    context: PreflightContext, plan: NetworkPlan, network: Mapping[str, Any]
) -> Answer:
    asked = question(plan.id, f"connection with {SERVICE}")
    query = urlencode({"network": plan.path})
    connections = context.client.items(rest.CONNECTIONS, asked, SERVICE, query)
    has = [
        name for connection in connections for name in connection.get("reservedPeeringRanges") or ()
    ]
    ranges = context.declared.stack.declared.network.ranges
    existing = [plan.ranges[key] for key, range_ in ranges.items() if range_.existing]
    update = f"gcloud services vpc-peerings update --service={SERVICE} --network={plan.name}"
    update += f" --project={plan.project} --ranges={','.join([*has, *plan.ranges.values()])}"
    if missing := [name for name in existing if name not in has]:
        meets = f"jobs are refused: the peering lacks range {', '.join(missing)}"
        return asked.refused(f"ranges: {', '.join(has) or 'none'}", meets, update)
    if connections and not {*has} & {*plan.ranges.values()}:
        meets = "the connection is refused: Cannot modify allocated ranges in CreateConnection"
        mend = "list the ranges of the connection in network.ranges.KEY.existing"
        return asked.refused(f"ranges: {', '.join(has) or 'none'}", meets, mend)
    states = {
        peering.get("name"): peering.get("state") for peering in network.get("peerings") or ()
    }
    for peer in connections:
        if (state := states.get(peer.get("peering"), "ACTIVE")) != "ACTIVE":
            meets = "jobs cannot connect to the network"
            return asked.refused(f"peering {peer['peering']} is {state}", meets, update)
    return asked.ok(
        f"ranges: {', '.join(has)}" if connections else "none yet: the stack creates the connection"
    )


@answered
def _ask_attachment(context: PreflightContext, path: str) -> Answer:
    asked = question(path, "existence of the network attachment")
    if context.client.get(rest.ATTACHMENT, asked, path):
        return asked.ok("yes")
    mend = "set network.attachment.existing to an existing attachment"
    return asked.refused("no", "jobs are refused", mend)


@answered
def _ask_zones(context: PreflightContext, peering: Mapping[str, str]) -> Answer:
    domain, project = peering["domain"], peering["targetProject"]
    asked = question(f"names of {domain}", f"private zones of {project}")
    zones = context.client.items(rest.ZONES, asked, project)
    network = f"projects/{project}/global/networks/{peering['targetNetwork']}"
    names = list[str]()
    for zone in zones:
        visible_in = (zone.get("privateVisibilityConfig") or {}).get("networks") or ()
        zone_name, name = (f".{text.rstrip('.')}" for text in (str(zone.get("dnsName")), domain))
        serves = zone_name == "." or name.endswith(zone_name) or zone_name.endswith(name)
        if serves and any(str(e.get("networkUrl", "")).endswith(network) for e in visible_in):
            names.append(str(zone["dnsName"]))
    if names:
        return asked.ok(", ".join(names))
    mend = (
        f"gcloud dns managed-zones create NAME --visibility=private --dns-name={domain}"
        f" --networks={peering['targetNetwork']} --project={project} --description=NAMES"
    )
    missing = f"no zone is visible to network {peering['targetNetwork']}"
    return asked.warning(missing, f"jobs cannot resolve names of {domain}", mend)


Block = ipaddress.IPv4Network


@dataclass(frozen=True, slots=True)
class AddressBlock:
    """Addresses of a new subnet or range, or addresses in use in the network."""

    block: Block
    what: str
    name: str
    """``REGION/NAME`` of a subnet, ``global/NAME`` of a range, or the name of a route."""
    only_within: bool = False
    """True for a static route, which conflicts only with a block that contains the route."""

    def conflicts(self, wanted: AddressBlock) -> bool:
        """Return True if this block prevents the creation of the other block."""
        if self.only_within:
            return self.block.subnet_of(wanted.block)
        return self.name != wanted.name and self.block.overlaps(wanted.block)


def wanted_blocks(stack: Stack) -> Iterator[AddressBlock]:
    """Yield the subnets and ranges that the stack file adds with explicit addresses."""
    network, plan = stack.declared.network, stack.network
    if plan is None:
        return
    if network.subnet and network.subnet.range and not network.subnet.existing:
        region, _, name = plan.subnet.split("/")[-3:]
        yield AddressBlock(Block(network.subnet.range), f"subnet {name}", f"{region}/{name}")
    for key, wanted in network.ranges.items():
        if wanted.address and wanted.prefix_length and not wanted.existing:
            block, name = Block(f"{wanted.address}/{wanted.prefix_length}"), plan.ranges[key]
            yield AddressBlock(block, f"range {name}", f"global/{name}")


def in_the_way(wanted: AddressBlock, held: Iterable[AddressBlock]) -> list[AddressBlock]:
    """Return existing blocks that conflict with a new block; empty if it already exists."""
    held = list(held)
    if any((block.name, block.block) == (wanted.name, wanted.block) for block in held):
        return []
    return [block for block in held if block.conflicts(wanted)]


def held_blocks(
    network: str,
    subnetworks: Iterable[Mapping[str, Any]],
    addresses: Iterable[Mapping[str, Any]],
    routes: Iterable[Mapping[str, Any]],
) -> Iterator[AddressBlock]:
    """Yield the address blocks in use in ``network``, from the lists of its project."""

    def inside(items: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        return (item for item in items if str(item.get("network")).endswith(network))

    for entry in inside(subnetworks):
        blocks = [entry.get("ipCidrRange")]
        blocks += [other.get("ipCidrRange") for other in entry.get("secondaryIpRanges") or ()]
        where = str(entry.get("region", "")).rpartition("/")[2]
        yield from _held(blocks, f"subnet {entry['name']} in {where}", f"{where}/{entry['name']}")
    for entry in inside(addresses):
        if entry.get("purpose") == "VPC_PEERING":
            block = f"{entry.get('address')}/{entry.get('prefixLength')}"
            yield from _held([block], f"range {entry['name']}", f"global/{entry['name']}")
    for entry in inside(routes):
        if entry.get("nextHopPeering"):
            what = f"peering {entry['nextHopPeering']}"
            yield from _held([entry.get("destRange")], what, entry["name"])
        elif not entry.get("nextHopNetwork"):  # the route of a subnet
            what = f"route {entry['name']}"
            yield from _held([entry.get("destRange")], what, entry["name"], only_within=True)


def _held(
    blocks: Iterable[Any], what: str, name: str, *, only_within: bool = False
) -> Iterator[AddressBlock]:
    for block in blocks:
        try:
            network_block = Block(str(block), strict=False)
        except ValueError:  # missing, or IPv6
            continue
        yield AddressBlock(network_block, f"{what} ({network_block})", name, only_within)
