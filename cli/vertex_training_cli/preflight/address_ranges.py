"""Blocks of addresses that a stack wants, and what holds addresses in the network. Pure.

https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges
https://docs.cloud.google.com/vpc/docs/routes#subnet-route-interactions
https://docs.cloud.google.com/vpc/docs/configure-private-services-access#considerations
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.stack import Stack

Block = ipaddress.IPv4Network


@dataclass(frozen=True, slots=True)
class WantedBlock:
    """Addresses that the stack asks for."""

    block: Block
    what: str
    """As a message names it."""
    name: str
    """``REGION/NAME`` of the subnet, or ``global/NAME`` of the range, in the cloud."""


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """Addresses that something in the network has."""

    block: Block
    what: str
    name: str
    only_within: bool = False
    """Whether it stands in the way only of a block that it lies within: a static route."""

    def conflicts(self, wanted: WantedBlock) -> bool:
        """Whether the wanted block is refused because of this one."""
        if self.only_within:
            return self.block.subnet_of(wanted.block)
        return self.name != wanted.name and self.block.overlaps(wanted.block)


def wanted_blocks(stack: Stack) -> Iterator[WantedBlock]:
    """What the stack makes at addresses of its own choice."""
    network, plan = stack.declared.network, stack.network
    if plan is None:
        return
    if network.subnet and network.subnet.range and not network.subnet.existing:
        region, _, name = plan.subnet.split("/")[-3:]
        yield WantedBlock(Block(network.subnet.range), f"subnet {name}", f"{region}/{name}")
    for key, wanted in network.ranges.items():
        if wanted.address and wanted.prefix_length and not wanted.existing:
            block, name = Block(f"{wanted.address}/{wanted.prefix_length}"), plan.ranges[key]
            yield WantedBlock(block, f"range {name}", f"global/{name}")


def in_the_way(wanted: WantedBlock, held: Iterable[HeldBlock]) -> list[HeldBlock]:
    """What stands in the way of a block; nothing of one that is there already.

    Once jobs ran in a range of peering, routes lead to Google's machines in it.
    """
    held = list(held)
    if any((each.name, each.block) == (wanted.name, wanted.block) for each in held):
        return []
    return [each for each in held if each.conflicts(wanted)]


def held_blocks(
    network: str,
    subnetworks: Iterable[Mapping[str, Any]],
    addresses: Iterable[Mapping[str, Any]],
    routes: Iterable[Mapping[str, Any]],
) -> Iterator[HeldBlock]:
    """What has addresses in ``network``, of the lists of its project."""
    for each in _inside(network, subnetworks):
        blocks = [each.get("ipCidrRange")]
        blocks += [other.get("ipCidrRange") for other in each.get("secondaryIpRanges") or ()]
        where = str(each.get("region", "")).rpartition("/")[2]
        yield from _held(blocks, f"subnet {each['name']} in {where}", f"{where}/{each['name']}")
    for each in _inside(network, addresses):
        if each.get("purpose") == "VPC_PEERING":
            block = f"{each.get('address')}/{each.get('prefixLength')}"
            yield from _held([block], f"range {each['name']}", f"global/{each['name']}")
    for each in _inside(network, routes):
        if each.get("nextHopPeering"):
            what = f"peering {each['nextHopPeering']}"
            yield from _held([each.get("destRange")], what, each["name"])
        elif not each.get("nextHopNetwork"):  # that of a subnet
            what = f"route {each['name']}"
            yield from _held([each.get("destRange")], what, each["name"], only_within=True)


def _inside(network: str, items: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    short = network.rpartition("/")[2]
    project = network.split("/")[1]
    for each in items:
        link = str(each.get("network"))
        if link.endswith(f"projects/{project}/global/networks/{short}"):
            yield each


def _held(
    blocks: Iterable[Any], what: str, name: str, *, only_within: bool = False
) -> Iterator[HeldBlock]:
    for block in blocks:
        try:
            found = Block(str(block), strict=False)
        except ValueError:  # none, or of IPv6
            continue
        yield HeldBlock(found, f"{what} ({found})", name, only_within)
