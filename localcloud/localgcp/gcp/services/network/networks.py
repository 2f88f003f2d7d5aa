"""VPC networks and subnetworks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.codec import Unknown
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services.network import peerings
from localgcp.gcp.services.network.compute import Compute, invalid, new_number, own_network
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import Block, find_overlap

_SMALLEST, _LARGEST = 29, 4
"""https://cloud.google.com/vpc/docs/subnets#limitations"""


@dataclass(frozen=True)
class Network(Compute):
    """A VPC network (``gcp.compute.Network``).

    Its routes and its auto mode subnets are not kept.
    """

    rules: ClassVar = {"name": rules.gce_name}

    title: str = "Network"
    noun: str = "network"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        number = new_number()
        made = super().make(cloud, project, id_, inputs)
        # Terraform reads back what the API fills in.
        filled = {
            "mtu": inputs.get("mtu") or 1460,
            "routingMode": inputs.get("routingMode") or "REGIONAL",
            "autoCreateSubnetworks": inputs.get("autoCreateSubnetworks", True),
        }
        return {**made, **filled, "networkId": number, "numericId": number}

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        super().unmake(cloud, id_, olds)
        peerings.release(cloud, id_)


@dataclass(frozen=True)
class Subnetwork(Compute):
    """A subnetwork grows in place; any other change of its range replaces it."""

    rules: ClassVar = {"name": rules.gce_name, "ipCidrRange": rules.cidr}

    title: str = "Subnetwork"
    noun: str = "subnetwork"

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        old, new = olds.get("ipCidrRange"), news.get("ipCidrRange")
        if not old or not new or isinstance(new, Unknown):
            return []
        before = ipaddress.ip_network(old, strict=False)
        after = ipaddress.ip_network(new, strict=False)
        grown = before.version == after.version and _contains(after, before)
        # The plugin reports this replacement on no property of its own.
        return [] if grown else [Change("__meta", UPDATE, replace=True)]

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        network = own_network(cloud, project, inputs, doing)
        self._verify_ranges(cloud, network, inputs, doing, own="")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        network = own_network(cloud, project, inputs, "")
        return {
            **super().make(cloud, project, id_, inputs),
            **_addressing(inputs),
            "network": resource_paths.SELF_LINK + network,
            "region": self._part(cloud, inputs, "region"),
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "purpose": inputs.get("purpose") or "PRIVATE",
            "stackType": inputs.get("stackType") or "IPV4_ONLY",
            "subnetworkId": int(new_number()),
        }

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        doing = f"Error updating {self.title} {id_!r}"
        network = own_network(cloud, project, olds, doing)
        self._verify_ranges(cloud, network, inputs, doing, own=id_)
        return {"network": olds["network"], **_addressing(inputs)}

    def _verify_ranges(
        self, cloud: Cloud, network: str, inputs: Mapping[str, Any], doing: str, *, own: str
    ) -> None:
        seen: list[Block] = []
        for field, cidr in _ranges(inputs):
            block = _legal(doing, field, cidr)
            held = find_overlap(cloud.store, network, block, own)
            if held or any(block.overlaps(each) for each in seen):
                owner = held.owner if held else "another range of this subnetwork"
                reason = f"Invalid IPCidrRange: {cidr} conflicts with {owner}."
                raise invalid(doing, field, cidr, reason)
            seen.append(block)


def _ranges(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and value of every range a subnetwork asks for."""
    if cidr := text(dict(inputs), "ipCidrRange"):
        yield "ipCidrRange", cidr
    for index, each in enumerate(inputs.get("secondaryIpRanges") or []):
        if each.get("ipCidrRange"):
            yield f"secondaryIpRanges[{index}].ipCidrRange", each["ipCidrRange"]


def _legal(doing: str, field: str, cidr: str) -> Block:
    try:
        block = Block(cidr)
    except ValueError:
        hint = f"Must be a CIDR address range, such as {_network_of(cidr)}."
        raise invalid(doing, field, cidr, hint) from None
    if not _LARGEST <= block.prefixlen <= _SMALLEST:
        reason = f"Subnetwork CIDR range must be between /{_LARGEST} and /{_SMALLEST}."
        raise CloudError(doing, 400, f"{reason} Got {cidr}", "invalid")
    return block


def _network_of(cidr: str) -> str:
    try:
        return str(Block(cidr, strict=False))
    except ValueError:
        return "10.0.0.0/24"


def _addressing(inputs: Mapping[str, Any]) -> dict[str, Any]:
    cidr = text(dict(inputs), "ipCidrRange")
    return {"gatewayAddress": str(Block(cidr)[1])} if cidr else {}


def _contains(outer: Any, inner: Any) -> bool:
    return inner.subnet_of(outer)
