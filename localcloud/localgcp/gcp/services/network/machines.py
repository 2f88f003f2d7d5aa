"""Machines of one's own: checked and kept; nothing boots here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.services.network.compute import VerifiedCompute, invalid, new_number, own_network
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import SUBNETWORK

#: Seconds: https://docs.cloud.google.com/compute/docs/instances/limit-vm-runtime
_SHORTEST_RUN: Final = 30
_LONGEST_RUN: Final = 120 * 24 * 3600


@dataclass(frozen=True)
class Instance(VerifiedCompute):
    """A machine (``gcp.compute.Instance``), with the properties that its row of the schema has."""

    rules: ClassVar = {"name": rules.gce_name}

    title: str = "instance"
    noun: str = "instance"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        region = self._part(cloud, inputs, "zone").rpartition("-")[0]
        for index, interface in enumerate(inputs["networkInterfaces"]):
            field = f"networkInterfaces[{index}]"
            if interface.get("network"):
                own_network(cloud, project, interface, doing)
            if subnet := interface.get("subnetwork"):
                home = {"project": interface.get("subnetworkProject") or project, "region": region}
                path = resource_paths.resolve(cloud.store, subnet, "subnetworks", **home)
                if cloud.store.get(SUBNETWORK, path) is None or f"/regions/{region}/" not in path:
                    reason = "The referenced subnetwork resource cannot be found in the region."
                    raise invalid(doing, f"{field}.subnetwork", subnet, reason)
            elif not interface.get("network"):
                raise invalid(doing, field, "", "Give network or subnetwork.")
        self._verify_scheduling(inputs.get("scheduling") or {}, doing)

    @staticmethod
    def _verify_scheduling(scheduling: dict[str, Any], doing: str) -> None:
        limit = scheduling.get("maxRunDuration")
        action = scheduling.get("instanceTerminationAction")
        if limit and not _SHORTEST_RUN <= int(limit["seconds"]) <= _LONGEST_RUN:
            reason = f"Must be between {_SHORTEST_RUN} and {_LONGEST_RUN} seconds."
            raise invalid(doing, "scheduling.maxRunDuration", str(limit["seconds"]), reason)
        if action and action not in {"STOP", "DELETE"}:
            reason = "Must be STOP or DELETE."
            raise invalid(doing, "scheduling.instanceTerminationAction", action, reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        status = inputs.get("desiredStatus") or "RUNNING"
        made = {"instanceId": new_number(), "currentStatus": status}
        return {
            **super().make(cloud, project, id_, inputs),
            **made,
            "zone": self._part(cloud, inputs, "zone"),
        }
