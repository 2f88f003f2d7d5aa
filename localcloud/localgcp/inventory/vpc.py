"""Networks of the local cloud as others than the gcp plugin see them."""

from __future__ import annotations

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
    """May resources of ``project`` use the networks of ``host`` (Shared VPC)?"""
    return store.get(SERVICE_PROJECT, f"{host}/{project}") is not None


def network_of(store: Store, resource: StoredResource) -> str | None:
    """Path of the network that a subnetwork, an address or a connection belongs to."""
    given = resource.outputs.get("network")
    return (
        resource_paths.resolve(store, given, "networks", project=resource.project)
        if given
        else None
    )


def in_network(store: Store, type_: str, network: str) -> list[StoredResource]:
    """Resources of a type that belong to the network with this path."""
    project = resource_paths.project_of(network)
    return [each for each in store.list(type_, project) if network_of(store, each) == network]


def subnetworks_of(store: Store, attachment: StoredResource) -> list[str]:
    """Paths of an attachment's subnetworks, which may lie in a host project."""
    home = {"project": attachment.project, "region": attachment.outputs["region"]}
    given = attachment.outputs.get("subnetworks") or []
    return [resource_paths.resolve(store, each, "subnetworks", **home) for each in given]
