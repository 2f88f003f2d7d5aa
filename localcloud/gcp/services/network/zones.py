"""Cloud DNS zones; names are not resolved here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localcloud.gcp.cloud import Cloud, CloudError, now, text
from localcloud.gcp.services.base import Service
from localcloud.gcp.services.network.compute import new_number
from localcloud.inventory import links
from localcloud.inventory.vpc import NETWORK


@dataclass(frozen=True)
class ManagedZone(Service):
    """A DNS zone (`gcp.dns.ManagedZone`); a private one names the networks that see it."""

    title: str = "ManagedZone"
    api: str | None = "dns.googleapis.com"

    def exists(self, id_: str) -> str:
        return f"The resource 'entity.managedZone' named '{links.last(id_)}' already exists"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        name = text(inputs, "dnsName")
        if not name.endswith("."):
            reason = f"Invalid value for 'entity.managedZone.dnsName': '{name}'"
            raise CloudError(doing, 400, reason, "invalid")
        private = inputs.get("privateVisibilityConfig") or {}
        for each in private.get("networks") or []:
            path = links.resolve(cloud.store, each["networkUrl"], "networks", project=project)
            if cloud.store.get(NETWORK, path) is None:
                reason = f"The 'entity.managedZone' refers to a network not found: '{path}'"
                raise CloudError(doing, 400, reason, "invalid")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {
            "project": project,
            "creationTime": now().partition(".")[0] + "Z",
            "managedZoneId": int(new_number()),
            "nameServers": [f"ns-cloud-c{n}.googledomains.com." for n in range(1, 5)],
        }

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        self.verify(cloud, project, inputs, f"Error updating {self.title} {id_!r}")
        return {}
