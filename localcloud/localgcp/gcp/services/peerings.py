"""Private services access: allocated ranges, private connections, peering routes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from localgcp.errors import CloudError, OperationError, RpcCode
from localgcp.gcp.cloud import Cloud, Values, text
from localgcp.gcp.services.base import (
    Compute,
    ExistingResource,
    ResourceType,
    action,
    in_use,
    invalid,
    own_network,
)
from localgcp.inventory import resource_paths
from localgcp.inventory.resource_paths import is_local
from localgcp.inventory.vpc import (
    ADDRESS,
    CONNECTION,
    NETWORK,
    Block,
    find_overlap,
    find_peering_range,
    free_block,
    in_network,
    network_of,
)
from localgcp.vertex import networks

# Public threads quote this text (github.com/hashicorp/terraform-provider-google/issues/16275).
_STILL_USED: Final = (
    "Failed to delete connection; Producer services (e.g. CloudSQL, Cloud Memstore, etc.) are "
    "still using this connection."
)
_TAKEN: Final = (
    "Cannot modify allocated ranges in CreateConnection. Please use UpdateConnection. "
    "Existing allocated IP ranges: [{}]."
)


class GlobalAddress(Compute):
    """A global address (``gcp.compute.GlobalAddress``), usually a range for VPC peering."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        if text(inputs, "purpose") != "VPC_PEERING":
            return
        if text(inputs, "addressType") != "INTERNAL":
            reason = "Purpose VPC_PEERING needs an internal address."
            raise invalid("addressType", text(inputs, "addressType"), reason)
        network = own_network(cloud, project, inputs)
        prefix = inputs.get("prefixLength")
        if prefix is None or not 8 <= int(prefix) <= 29:
            raise invalid("prefixLength", prefix, "Must be between 8 and 29.")
        block = _block(cloud, network, inputs)
        if block is None:
            reason = f"There is no unused /{prefix} in network '{network}'."
            raise CloudError(400, reason, "ipSpaceExhausted")
        overlap = find_overlap(cloud.store, network, block)
        if overlap:
            reason = f"The range {block} conflicts with {overlap.owner}."
            raise invalid("address", inputs.get("address"), reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        made: Values = {"labelFingerprint": "42WmSpB8rSM="}
        if text(inputs, "purpose") == "VPC_PEERING":
            block = _block(cloud, own_network(cloud, project, inputs), inputs)
            made["address"] = str(block.network_address) if block else ""
        return made

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        for connection in cloud.store.list(CONNECTION, resource_paths.project_of(id_)):
            # A connection with the policy ABANDON does not prevent the deletion of its ranges.
            kept = connection.inputs.get("deletionPolicy") == "ABANDON"
            if not kept and resource_paths.short_name(id_) in connection.inputs.get(
                "reservedPeeringRanges", []
            ):
                user = f"{network_of(cloud.store, connection)}:{connection.inputs['service']}"
                raise in_use(self.noun, id_, user)
        super().unmake(cloud, id_, olds)


class Connection(ResourceType):
    """A private connection to a service producer (``gcp.servicenetworking.Connection``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        return resource_paths.project_of(self._network(cloud, values))

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"{quote(self._network(cloud, inputs), safe='')}:{text(inputs, 'service')}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        path, _, service = unquote(id_to_import).rpartition(":")
        home = {"project": cloud.settings.project}
        network = resource_paths.resolve(cloud.store, path, "networks", **home)
        return f"{quote(network, safe='')}:{service}"

    def owner(self, cloud: Cloud, id_: str) -> str:
        path = unquote(id_)
        match = re.match(r"projects/([^/]+)/", path)
        return match[1] if match else cloud.settings.project

    def create(self, cloud: Cloud, inputs: Values) -> ExistingResource:
        if inputs.get("updateOnCreationFail") and not self.overwrites:
            return dataclasses.replace(self, overwrites=True).create(cloud, inputs)
        return super().create(cloud, inputs)

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        network = self._network(cloud, inputs)
        with action(f"Error waiting to create {self.title}"):
            if cloud.store.get(NETWORK, network) is None:
                raise CloudError(404, f"The resource '{network}' was not found", "notFound")
            existing = cloud.store.get(CONNECTION, self.id(cloud, inputs))
            if existing and not self.overwrites:
                ranges = ", ".join(existing.inputs.get("reservedPeeringRanges", []))
                raise OperationError(RpcCode.FAILED_PRECONDITION, _TAKEN.format(ranges))
            _need_ranges(cloud, network, inputs)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"peering": text(inputs, "service").replace(".", "-")}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        with action(f"Error waiting to update {self.title}"):
            _need_ranges(cloud, self._network(cloud, inputs), inputs)
        return {}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        # pulumi-gcp 10.2 added the deletion policy REMOVE_PEERING, which skips this check of the
        # producers. 9.35.0 distinguishes only ABANDON, PREVENT and all other values.
        if networks.jobs_on_network(cloud.store, self._network(cloud, olds)):
            doing = f"Unable to remove {self.title}, err: Error waiting for Delete {self.title}"
            raise OperationError(RpcCode.FAILED_PRECONDITION, _STILL_USED, doing=doing)
        super().unmake(cloud, id_, olds)

    def _network(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        network, home = text(values, "network"), cloud.settings.project
        if not is_local(home):  # a preview, or a call that the guard will refuse
            return network if network.startswith("projects/") else f"projects/{home}/{network}"
        return resource_paths.resolve(cloud.store, network, "networks", project=home)


class PeeringRoutes(Compute):
    """Settings of a peering's routes (``gcp.compute.NetworkPeeringRoutesConfig``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        network = own_network(cloud, project, inputs)
        peering = text(inputs, "peering")
        if not any(
            connection.outputs.get("peering") == peering
            for connection in in_network(cloud.store, CONNECTION, network)
        ):
            reason = f"There is no peering '{peering}' in network '{network}'."
            raise invalid("networkPeering.name", peering, reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        public = {"exportSubnetRoutesWithPublicIp": True, "importSubnetRoutesWithPublicIp": False}
        fields = {name: inputs[name] for name in public if inputs.get(name) is not None}
        return {**public, **fields}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        """Do nothing: the settings stay a part of the peering."""


def release(cloud: Cloud, network: str) -> None:
    """Delete the connections of a network. Raises CloudError if a job uses the network."""
    for connection in in_network(cloud.store, CONNECTION, network):
        if jobs := networks.jobs_on_network(cloud.store, network):
            raise in_use("network", network, jobs[0].name)
        cloud.store.delete(CONNECTION, connection.id)


def _need_ranges(cloud: Cloud, network: str, inputs: Mapping[str, Any]) -> None:
    names = [str(name) for name in inputs.get("reservedPeeringRanges") or []]
    missing = [name for name in names if find_peering_range(cloud.store, network, name) is None]
    if missing:
        reason = f"Allocated IP range not found in network '{network}': {', '.join(missing)}."
        raise OperationError(RpcCode.NOT_FOUND, reason)
    if not names:
        text_ = "At least one allocated IP range is needed."
        raise OperationError(RpcCode.FAILED_PRECONDITION, text_)


def _block(cloud: Cloud, network: str, inputs: Mapping[str, Any]) -> Block | None:
    prefix = int(inputs["prefixLength"])
    address = text(inputs, "address")
    if address:
        return Block(f"{address}/{prefix}", strict=False)
    return free_block(cloud.store, network, prefix)


TYPES: Final[dict[str, ResourceType]] = {
    ADDRESS: GlobalAddress("GlobalAddress", noun="address"),
    CONNECTION: Connection("Service Networking Connection", "servicenetworking.googleapis.com"),
    "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig": PeeringRoutes(
        "NetworkPeeringRoutesConfig", overwrites=True
    ),
}
