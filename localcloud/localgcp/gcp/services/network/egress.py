"""Firewall rules, Cloud Routers and Cloud NAT: checked and kept; no packet passes here."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.codec import plain
from localgcp.gcp.rules import firewall_needs_a_source
from localgcp.gcp.services.network.compute import (
    NAT,
    ROUTER,
    Compute,
    VerifiedCompute,
    invalid,
    own_network,
)
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import SUBNETWORK

_HIGHEST_PRIORITY: Final = 65_535


@dataclass(frozen=True)
class Firewall(VerifiedCompute):
    """A firewall rule (``gcp.compute.Firewall``); one for ingress needs a source."""

    rules: ClassVar = {"name": rules.gce_name}

    title: str = "Firewall"
    noun: str = "firewall"

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        return firewall_needs_a_source(plain(dict(inputs)))

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        own_network(cloud, project, inputs, doing)
        if not 0 <= int(inputs.get("priority", 1000)) <= _HIGHEST_PRIORITY:
            reason = f"Must be between 0 and {_HIGHEST_PRIORITY}."
            raise invalid(doing, "priority", inputs["priority"], reason)
        for field in ("sourceRanges", "destinationRanges"):
            for index, cidr in enumerate(inputs.get(field) or []):
                try:
                    ipaddress.ip_network(cidr)
                except ValueError as error:
                    reason = f"Must be a valid CIDR range ({error})."
                    raise invalid(doing, f"{field}[{index}]", cidr, reason) from None

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        made = super().make(cloud, project, id_, inputs)
        return {**made, "direction": inputs.get("direction") or "INGRESS"}


@dataclass(frozen=True)
class Router(Compute):
    """A Cloud Router (``gcp.compute.Router``)."""

    rules: ClassVar = {"name": rules.gce_name}

    title: str = "Router"
    noun: str = "router"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        own_network(cloud, project, inputs, doing)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        network = own_network(cloud, project, inputs, "")
        made = super().make(cloud, project, id_, inputs)
        region = self._part(cloud, inputs, "region")
        return {**made, "network": resource_paths.SELF_LINK + network, "region": region}

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        _, project, _, region, _, name = id_.split("/")
        for nat in cloud.store.list(NAT, project):
            if nat.id.startswith(f"{project}/{region}/{name}/"):
                cloud.store.delete(NAT, nat.id)  # a NAT is a part of its router


@dataclass(frozen=True)
class RouterNat(VerifiedCompute):
    """Cloud NAT on a router (``gcp.compute.RouterNat``)."""

    title: str = "RouterNat"
    noun: str = "nat"

    def owner(self, cloud: Cloud, id_: str) -> str:
        parts = id_.split("/")
        return parts[0] if len(parts) == 4 else super().owner(cloud, id_)

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        region, router = self._part(cloud, inputs, "region"), self._part(cloud, inputs, "router")
        path = f"projects/{project}/regions/{region}/routers/{router}"
        if cloud.store.get(ROUTER, path) is None:
            raise CloudError(doing, 404, f"The resource '{path}' was not found", "notFound")
        home = {"project": project, "region": region}
        for index, each in enumerate(inputs.get("subnetworks") or []):
            subnet = resource_paths.resolve(cloud.store, each["name"], "subnetworks", **home)
            if cloud.store.get(SUBNETWORK, subnet) is None:
                field = f"nats[0].subnetworks[{index}].name"
                reason = "The referenced subnetwork resource cannot be found."
                raise invalid(doing, field, each["name"], reason)
        if text(inputs, "natIpAllocateOption") == "MANUAL_ONLY" and not inputs.get("natIps"):
            reason = "Manual allocation needs natIps."
            raise invalid(doing, "nats[0].natIps", "", reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        made = super().make(cloud, project, id_, inputs)
        region = self._part(cloud, inputs, "region")
        return {**made, "region": region, "endpointTypes": ["ENDPOINT_TYPE_VM"]}
