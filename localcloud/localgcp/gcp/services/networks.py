"""Networks, subnetworks, firewall rules, NAT, attachments and Shared VPC, without traffic."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final

from localgcp.errors import CloudError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Values, new_number, text
from localgcp.gcp.codec import Unknown, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services import peerings
from localgcp.gcp.services.base import (
    FIREWALL,
    IN_USE,
    NAT,
    ROUTER,
    Compute,
    ResourceType,
    invalid,
    own_network,
)
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import (
    ATTACHMENT,
    HOST_PROJECT,
    NETWORK,
    SERVICE_PROJECT,
    SUBNETWORK,
    Block,
    attached,
    find_overlap,
    subnetworks_of,
)

#: Prefix lengths of ranges: https://cloud.google.com/vpc/docs/subnets#limitations
_SMALLEST, _LARGEST = 29, 4
_HIGHEST_PRIORITY: Final = 65_535


class Network(Compute):
    """A VPC network (``gcp.compute.Network``), without routes and automatic subnetworks."""

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        # Terraform reads the values that the API fills in.
        return {
            "mtu": inputs.get("mtu") or 1460,
            "routingMode": inputs.get("routingMode") or "REGIONAL",
            "autoCreateSubnetworks": inputs.get("autoCreateSubnetworks", True),
            **dict.fromkeys(("networkId", "numericId"), new_number()),
        }

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        super().unmake(cloud, id_, olds)
        peerings.release(cloud, id_)


class Subnetwork(Compute):
    """A subnetwork. Extending the range updates it; any other change of the range replaces it."""

    def changed(self, news: Values, olds: Values) -> list[Change]:
        old, new = olds.get("ipCidrRange"), news.get("ipCidrRange")
        if not old or not new or isinstance(new, Unknown):
            return []
        before = ipaddress.ip_network(old, strict=False)
        after: Any = ipaddress.ip_network(new, strict=False)
        grown = before.version == after.version and before.subnet_of(after)
        # The official plugin reports this replacement for the metadata instead of a property.
        return [] if grown else [Change("__meta", UPDATE, replace=True)]

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        network = own_network(cloud, project, inputs)
        _verify_ranges(cloud, network, inputs, own="")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        network = own_network(cloud, project, inputs)
        return {
            **_addressing(inputs),
            "network": resource_paths.SELF_LINK + network,
            "region": self.part(cloud, inputs, "region"),
            "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
            "purpose": inputs.get("purpose") or "PRIVATE",
            "stackType": inputs.get("stackType") or "IPV4_ONLY",
            "subnetworkId": int(new_number()),
        }

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        network = own_network(cloud, self.project(cloud, olds), olds)
        _verify_ranges(cloud, network, inputs, own=id_)
        return {"network": olds["network"], **_addressing(inputs)}


def _verify_ranges(cloud: Cloud, network: str, inputs: Mapping[str, Any], *, own: str) -> None:
    seen: list[Block] = []
    for field, cidr in _ranges(inputs):
        block = _legal(field, cidr)
        overlap = find_overlap(cloud.store, network, block, own)
        if overlap or any(block.overlaps(other) for other in seen):
            owner = overlap.owner if overlap else "another range of this subnetwork"
            raise invalid(field, cidr, f"Invalid IPCidrRange: {cidr} conflicts with {owner}.")
        seen.append(block)


def _ranges(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if cidr := text(inputs, "ipCidrRange"):
        yield "ipCidrRange", cidr
    for index, range_ in enumerate(inputs.get("secondaryIpRanges") or []):
        if range_.get("ipCidrRange"):
            yield f"secondaryIpRanges[{index}].ipCidrRange", range_["ipCidrRange"]


def _legal(field: str, cidr: str) -> Block:
    try:
        block = Block(cidr)
    except ValueError:
        try:
            example = str(Block(cidr, strict=False))
        except ValueError:
            example = "10.0.0.0/24"
        raise invalid(field, cidr, f"Must be a CIDR address range, such as {example}.") from None
    if not _LARGEST <= block.prefixlen <= _SMALLEST:
        reason = f"Subnetwork CIDR range must be between /{_LARGEST} and /{_SMALLEST}."
        raise CloudError(400, f"{reason} Got {cidr}", "invalid")
    return block


def _addressing(inputs: Mapping[str, Any]) -> Values:
    cidr = text(inputs, "ipCidrRange")
    return {"gatewayAddress": str(Block(cidr)[1])} if cidr else {}


class Firewall(Compute):
    """A firewall rule (``gcp.compute.Firewall``); an ingress rule requires a source."""

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        return check.firewall_needs_a_source(plain(inputs))

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        own_network(cloud, project, inputs)
        if not 0 <= int(inputs.get("priority", 1000)) <= _HIGHEST_PRIORITY:
            reason = f"Must be between 0 and {_HIGHEST_PRIORITY}."
            raise invalid("priority", inputs["priority"], reason)
        for field in ("sourceRanges", "destinationRanges"):
            for index, cidr in enumerate(inputs.get(field) or []):
                try:
                    ipaddress.ip_network(cidr)
                except ValueError as error:
                    reason = f"Must be a valid CIDR range ({error})."
                    raise invalid(f"{field}[{index}]", cidr, reason) from None

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"direction": inputs.get("direction") or "INGRESS"}


class Router(Compute):
    """A Cloud Router (``gcp.compute.Router``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        own_network(cloud, project, inputs)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        network = resource_paths.SELF_LINK + own_network(cloud, project, inputs)
        return {"network": network, "region": self.part(cloud, inputs, "region")}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        _, project, _, region, _, name = id_.split("/")
        for nat in cloud.store.list(NAT, project):
            if nat.id.startswith(f"{project}/{region}/{name}/"):
                cloud.store.delete(NAT, nat.id)


class RouterNat(Compute):
    """Cloud NAT on a router (``gcp.compute.RouterNat``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        region, router = self.part(cloud, inputs, "region"), self.part(cloud, inputs, "router")
        path = f"projects/{project}/regions/{region}/routers/{router}"
        if cloud.store.get(ROUTER, path) is None:
            raise CloudError(404, f"The resource '{path}' was not found", "notFound")
        home = {"project": project, "region": region}
        for index, attachment in enumerate(inputs.get("subnetworks") or []):
            subnet = resource_paths.resolve(cloud.store, attachment["name"], "subnetworks", **home)
            if cloud.store.get(SUBNETWORK, subnet) is None:
                field = f"nats[0].subnetworks[{index}].name"
                reason = "The referenced subnetwork resource cannot be found."
                raise invalid(field, attachment["name"], reason)
        if text(inputs, "natIpAllocateOption") == "MANUAL_ONLY" and not inputs.get("natIps"):
            raise invalid("nats[0].natIps", "", "Manual allocation needs natIps.")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        region = self.part(cloud, inputs, "region")
        return {"region": region, "endpointTypes": ["ENDPOINT_TYPE_VM"]}


class NetworkAttachment(Compute):
    """A network attachment (``gcp.compute.NetworkAttachment``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        networks = {
            self._subnetwork(cloud, project, inputs, index)
            for index in range(len(inputs.get("subnetworks") or []))
        }
        if len(networks) != 1:
            reason = "All subnetworks must belong to one network."
            raise invalid("subnetworks", ", ".join(inputs.get("subnetworks") or []), reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        network = self._subnetwork(cloud, project, inputs, 0)
        region = f"projects/{project}/regions/{self.part(cloud, inputs, 'region')}"
        return {
            "region": resource_paths.SELF_LINK + region,
            "network": resource_paths.SELF_LINK + network,
            "fingerprint": "5CcLE4OZV7w=",
        }

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        return {"region": olds["region"]}

    def _subnetwork(self, cloud: Cloud, project: str, inputs: Mapping[str, Any], index: int) -> str:
        reference = inputs["subnetworks"][index]
        field, region = f"subnetworks[{index}]", self.part(cloud, inputs, "region")
        home = {"project": project, "region": region}
        path = resource_paths.resolve(cloud.store, reference, "subnetworks", **home)
        host = resource_paths.project_of(path)
        if host != project and not attached(cloud.store, host, project):
            reason = "Cross project referencing is not allowed for this resource."
            raise invalid(field, reference, reason)
        resource = cloud.store.get(SUBNETWORK, path)
        if resource is None:
            raise invalid(field, reference, "The referenced subnetwork resource cannot be found.")
        if resource_paths.short_name(resource.outputs["region"]) != region:
            raise invalid(field, reference, f"The subnetwork must be in region {region}.")
        return resource_paths.resolve(
            cloud.store, text(resource.outputs, "network"), "networks", project=host
        )


class HostProject(Compute):
    """A project that shares its networks (``gcp.compute.SharedVPCHostProject``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        for resource in cloud.store.list(SERVICE_PROJECT):
            host = resource.outputs["hostProject"]
            if attached(cloud.store, host, project):
                reason = f"The project '{project}' is a service project of the host '{host}'."
                raise CloudError(400, reason, "invalidResourceUsage")

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        for resource in cloud.store.list(SERVICE_PROJECT):
            if resource.outputs["hostProject"] == id_:
                service = resource.outputs["serviceProject"]
                reason = f"The host project '{id_}' still has the service project '{service}'."
                doing = f"Error disabling {self.title} {id_!r}"
                raise CloudError(400, reason, IN_USE, doing)


class ServiceProject(Compute):
    """A project that uses a host's networks (``gcp.compute.SharedVPCServiceProject``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        return text(values, "hostProject")

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        service = text(inputs, "serviceProject")
        cloud.guard(service)
        if cloud.store.get(HOST_PROJECT, project) is None:
            reason = f"The project '{project}' is not a Shared VPC host project."
            raise CloudError(400, reason, "invalid")
        if cloud.store.get(HOST_PROJECT, service):
            reason = f"The project '{service}' is a Shared VPC host itself."
            raise CloudError(400, reason, "invalidResourceUsage")
        for resource in cloud.store.list(SERVICE_PROJECT):
            host = resource.outputs["hostProject"]
            if resource.outputs["serviceProject"] == service and host != project:
                reason = f"The project '{service}' is attached to the host '{host}' already."
                raise CloudError(400, reason, "invalidResourceUsage")

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        host, _, service = id_.partition("/")
        for resource in cloud.store.list(ATTACHMENT, service):
            for path in subnetworks_of(cloud.store, resource):
                if resource_paths.project_of(path) == host:
                    reason = f"The resource '{resource.id}' still uses the shared '{path}'."
                    raise CloudError(400, reason, IN_USE, f"Error detaching {self.title} {id_!r}")


_NAMED: Final = {"name": check.gce_name}
TYPES: Final[dict[str, ResourceType]] = {
    NETWORK: Network("Network", noun="network", rules=_NAMED),
    SUBNETWORK: Subnetwork(
        "Subnetwork", noun="subnetwork", rules={**_NAMED, "ipCidrRange": check.cidr}
    ),
    FIREWALL: Firewall("Firewall", noun="firewall", verifies_updates=True, rules=_NAMED),
    ROUTER: Router("Router", noun="router", rules=_NAMED),
    NAT: RouterNat("RouterNat", noun="nat", verifies_updates=True),
    ATTACHMENT: NetworkAttachment(
        "NetworkAttachment", noun="networkAttachment", verifies_updates=True
    ),
    HOST_PROJECT: HostProject(
        "Shared VPC Host",
        exists="The project '{id}' is already a Shared VPC host.",
        imports_ids=True,
    ),
    SERVICE_PROJECT: ServiceProject(
        "Shared VPC Service Project",
        exists="The project '{name}' is attached to the host '{parent}' already.",
        imports_ids=True,
    ),
}
