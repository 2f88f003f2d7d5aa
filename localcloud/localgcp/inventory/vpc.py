"""Networks, their subnetworks and address ranges, for all services of the local cloud."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, StoredResource

NETWORK: Final = "gcp:compute/network:Network"
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
ADDRESS: Final = "gcp:compute/globalAddress:GlobalAddress"
ATTACHMENT: Final = "gcp:compute/networkAttachment:NetworkAttachment"
CONNECTION: Final = "gcp:servicenetworking/connection:Connection"
HOST_PROJECT: Final = "gcp:compute/sharedVPCHostProject:SharedVPCHostProject"
SERVICE_PROJECT: Final = "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject"


def attached(store: Store, host: str, project: str) -> bool:
    """Return whether resources of ``project`` may use the networks of ``host`` (Shared VPC)."""
    return store.get(SERVICE_PROJECT, f"{host}/{project}") is not None


def network_of(store: Store, resource: StoredResource) -> str | None:
    """Return the network path of a subnetwork, an address or a connection."""
    if network := resource.outputs.get("network"):
        return resource_paths.resolve(store, network, "networks", project=resource.project)
    return None


def in_network(store: Store, type_: str, network: str) -> list[StoredResource]:
    """Return the resources of a type in the network with this path."""
    resources = store.list(type_, resource_paths.project_of(network))
    return [resource for resource in resources if network_of(store, resource) == network]


def subnetworks_of(store: Store, attachment: StoredResource) -> list[str]:
    """Return the paths of an attachment's subnetworks, which may belong to a host project."""
    home = {"project": attachment.project, "region": attachment.outputs["region"]}
    links = attachment.outputs.get("subnetworks") or []
    return [resource_paths.resolve(store, link, "subnetworks", **home) for link in links]


Block = ipaddress.IPv4Network

#: Range of the subnetworks of an auto mode network (https://cloud.google.com/vpc/docs/subnets).
AUTO_MODE: Final = Block("10.128.0.0/9")

# Pools for allocated ranges without an address. Google does not document the order.
_POOLS: Final = (Block("10.0.0.0/8"), Block("192.168.0.0/16"))


@dataclass(frozen=True)
class AllocatedRange:
    """The address block of a resource in a network."""

    block: Block
    owner: str
    """The resource in messages, such as ``existing subnetwork 'a' in region 'b'``."""
    path: str


def allocated_ranges(store: Store, network: str) -> Iterator[AllocatedRange]:
    """Yield the address blocks of a network's subnetworks and allocated ranges."""
    for subnet in in_network(store, SUBNETWORK, network):
        values = subnet.outputs
        region = resource_paths.short_name(values.get("region") or "")
        owner = f"existing subnetwork '{values['name']}' in region '{region}'"
        for range_ in (values, *(values.get("secondaryIpRanges") or [])):
            if cidr := range_.get("ipCidrRange"):
                yield AllocatedRange(Block(cidr, strict=False), owner, subnet.id)
    for address in in_network(store, ADDRESS, network):
        if block := peering_block(address):
            yield AllocatedRange(block, f"allocated range '{address.outputs['name']}'", address.id)
    resource = store.get(NETWORK, network)
    if resource and resource.outputs.get("autoCreateSubnetworks"):
        yield AllocatedRange(AUTO_MODE, "the subnetworks of an auto mode network", network)


def find_overlap(store: Store, network: str, block: Block, own: str = "") -> AllocatedRange | None:
    """Return the first range that overlaps the block, except the range of the resource ``own``."""
    others = (range_ for range_ in allocated_ranges(store, network) if range_.path != own)
    return next((other for other in others if other.block.overlaps(block)), None)


def free_block(store: Store, network: str, prefix: int) -> Block | None:
    """Return a free address block with this prefix length, or None."""
    used = [range_.block for range_ in allocated_ranges(store, network)]
    for pool in _POOLS:
        for block in pool.subnets(new_prefix=prefix) if prefix >= pool.prefixlen else ():
            if not any(block.overlaps(other) for other in used):
                return block
    return None


def find_peering_range(store: Store, network: str, name: str) -> StoredResource | None:
    """Return the network's allocated range of this name, or None."""
    path = f"projects/{resource_paths.project_of(network)}/global/addresses/{name}"
    resource = store.get(ADDRESS, path)
    if resource and peering_block(resource) and network_of(store, resource) == network:
        return resource
    return None


def peering_block(address: StoredResource) -> Block | None:
    """Return the block of an allocated range, or None for an address with another purpose."""
    values = address.outputs
    if values.get("purpose") != "VPC_PEERING" or not values.get("address"):
        return None
    return Block(f"{values['address']}/{int(values['prefixLength'])}", strict=False)
