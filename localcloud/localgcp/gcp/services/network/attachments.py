"""Network attachments: where Private Service Connect interfaces enter a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.network.compute import Compute, invalid
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import SUBNETWORK, attached


@dataclass(frozen=True)
class NetworkAttachment(Compute):
    """A network attachment (``gcp.compute.NetworkAttachment``).

    Its subnetworks are the project's own or, in a Shared VPC, those of the host project.
    """

    title: str = "NetworkAttachment"
    noun: str = "networkAttachment"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        networks = {
            self._subnetwork(cloud, project, inputs, index, doing)
            for index in range(len(inputs.get("subnetworks") or []))
        }
        if len(networks) != 1:
            reason = "All subnetworks must belong to one network."
            raise invalid(doing, "subnetworks", ", ".join(inputs.get("subnetworks") or []), reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        network = self._subnetwork(cloud, project, inputs, 0, "")
        region = f"projects/{project}/regions/{self._part(cloud, inputs, 'region')}"
        return {
            **super().make(cloud, project, id_, inputs),
            "region": resource_paths.SELF_LINK + region,
            "network": resource_paths.SELF_LINK + network,
            "fingerprint": "5CcLE4OZV7w=",
        }

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        self.verify(cloud, project, inputs, f"Error updating {self.title} {id_!r}")
        return {"region": olds["region"]}

    def _subnetwork(
        self, cloud: Cloud, project: str, inputs: Mapping[str, Any], index: int, doing: str
    ) -> str:
        """Path of the network of one subnetwork. Raises CloudError."""
        given = inputs["subnetworks"][index]
        field, region = f"subnetworks[{index}]", self._part(cloud, inputs, "region")
        home = {"project": project, "region": region}
        path = resource_paths.resolve(cloud.store, given, "subnetworks", **home)
        host = resource_paths.project_of(path)
        if host != project and not attached(cloud.store, host, project):
            reason = "Cross project referencing is not allowed for this resource."
            raise invalid(doing, field, given, reason)
        found = cloud.store.get(SUBNETWORK, path)
        if found is None:
            reason = "The referenced subnetwork resource cannot be found."
            raise invalid(doing, field, given, reason)
        if resource_paths.short_name(found.outputs["region"]) != region:
            reason = f"The subnetwork must be in region {region}."
            raise invalid(doing, field, given, reason)
        return resource_paths.resolve(
            cloud.store, text(found.outputs, "network"), "networks", project=host
        )
