"""Reservations and instances of Compute Engine. The local cloud never boots instances."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Values, new_number, now, text
from localgcp.gcp.services.base import (
    INSTANCE,
    Compute,
    ExistingResource,
    ResourceType,
    in_use,
    invalid,
    own_network,
)
from localgcp.inventory import resource_paths
from localgcp.inventory.machines import RESERVATION, has_ended
from localgcp.inventory.vpc import SUBNETWORK
from localgcp.vertex.records import JobTable

#: Seconds: https://docs.cloud.google.com/compute/docs/instances/limit-vm-runtime
_SHORTEST_RUN: Final = 30
_LONGEST_RUN: Final = 120 * 24 * 3600


class Instance(Compute):
    """A machine (``gcp.compute.Instance``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        region = self.part(cloud, inputs, "zone").rpartition("-")[0]
        for index, interface in enumerate(inputs["networkInterfaces"]):
            field = f"networkInterfaces[{index}]"
            if interface.get("network"):
                own_network(cloud, project, interface)
            if subnet := interface.get("subnetwork"):
                home = {"project": interface.get("subnetworkProject") or project, "region": region}
                path = resource_paths.resolve(cloud.store, subnet, "subnetworks", **home)
                if cloud.store.get(SUBNETWORK, path) is None or f"/regions/{region}/" not in path:
                    reason = "The referenced subnetwork resource cannot be found in the region."
                    raise invalid(f"{field}.subnetwork", subnet, reason)
            elif not interface.get("network"):
                raise invalid(field, "", "Set the field network or subnetwork.")
        scheduling = inputs.get("scheduling") or {}
        limit = scheduling.get("maxRunDuration")
        action = scheduling.get("instanceTerminationAction")
        if limit and not _SHORTEST_RUN <= int(limit["seconds"]) <= _LONGEST_RUN:
            reason = f"Must be between {_SHORTEST_RUN} and {_LONGEST_RUN} seconds."
            raise invalid("scheduling.maxRunDuration", str(limit["seconds"]), reason)
        if action and action not in {"STOP", "DELETE"}:
            raise invalid("scheduling.instanceTerminationAction", action, "Must be STOP or DELETE.")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {
            "instanceId": new_number(),
            "currentStatus": inputs.get("desiredStatus") or "RUNNING",
            "zone": self.part(cloud, inputs, "zone"),
        }


class Reservation(Compute):
    """A reservation (``gcp.compute.Reservation``); ``inUseCount`` counts machines of jobs."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        share = inputs.get("shareSettings") or {}
        projects = share.get("projectMaps") or share.get("projects")
        if share.get("shareType") == "SPECIFIC_PROJECTS" and not projects:
            reason = "SPECIFIC_PROJECTS needs at least one project."
            raise invalid("shareSettings.projectMap", "", reason)
        if share.get("shareType") == "LOCAL" and projects:
            reason = "A LOCAL reservation is shared with no project."
            raise invalid("shareSettings.projectMap", "", reason)
        at = _deleted_at(inputs)
        try:
            is_past = has_ended({"deleteAtTime": at})
        except (TypeError, ValueError):  # TypeError: the time has no time zone
            raise invalid("deleteAtTime", at, "Must be a time of RFC 3339.") from None
        if is_past:
            raise invalid("deleteAtTime", at, "Must be in the future.")
        id_ = self.id(cloud, inputs)
        former = cloud.store.get(cloud.type.token, id_)
        if former and has_ended(former.outputs):
            cloud.store.delete(cloud.type.token, id_)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        zone = f"projects/{project}/zones/{self.part(cloud, inputs, 'zone')}"
        made: Values = {}
        if not inputs.get("reservationSharingPolicy"):
            made["reservationSharingPolicy"] = {"serviceShareType": "DISALLOW_ALL"}
        return {
            **made,
            "zone": resource_paths.SELF_LINK + zone,
            "deleteAtTime": _deleted_at(inputs),
            "shareSettings": _share(inputs),
            "specificReservation": _specific(inputs, 0),
        }

    def read(self, cloud: Cloud, id_: str) -> ExistingResource | None:
        resource = super().read(cloud, id_)
        if resource is None or has_ended(resource.outputs):
            return None
        used = JobTable(cloud.store.path).used(resource.id)
        specific = {**resource.outputs["specificReservation"], "inUseCount": used}
        return ExistingResource(
            resource.id, resource.inputs, {**resource.outputs, "specificReservation": specific}
        )

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        used = JobTable(cloud.store.path).used(id_)
        count = int(inputs["specificReservation"]["count"])
        if count < used:
            reason = f"The reservation has {used} instances in use and cannot shrink below that."
            raise invalid("specificReservation.count", count, reason)
        return {
            "zone": olds["zone"],
            "deleteAtTime": _deleted_at(inputs) or olds.get("deleteAtTime") or "",
            "shareSettings": _share(inputs),
            "specificReservation": _specific(inputs, used),
        }

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        # Machines keep running after the deletion of a reservation that any machine may use:
        # https://cloud.google.com/compute/docs/instances/reservations-delete
        jobs = JobTable(cloud.store.path)
        if olds.get("specificReservationRequired") and (users := jobs.users(id_)):
            raise in_use(self.noun, id_, users[0].name)
        super().unmake(cloud, id_, olds)


def _deleted_at(inputs: Mapping[str, Any]) -> str:
    if at := text(inputs, "deleteAtTime"):
        return at
    after = (inputs.get("deleteAfterDuration") or {}).get("seconds")
    if not after:
        return ""
    created = datetime.fromisoformat(now())
    return (created + timedelta(seconds=int(after))).isoformat().replace("+00:00", "Z")


def _share(inputs: Mapping[str, Any]) -> Values:
    settings = _without_defaults(inputs.get("shareSettings") or {})
    maps = settings.get("projectMaps") or []
    return {
        "projectMaps": [
            {**project, "projectId": project.get("projectId") or project["id"]} for project in maps
        ],
        "projects": settings.get("projects") or [],
        "shareType": settings.get("shareType") or "LOCAL",
    }


def _specific(inputs: Mapping[str, Any], used: int) -> Values:
    specification = inputs["specificReservation"]
    machine = specification.get("instanceProperties") or {}
    fields = {"guestAccelerators": [], "localSsds": [], "locationHint": "", "machineType": ""}
    fields |= {"maintenanceInterval": "", "minCpuPlatform": ""}
    return {
        "assuredCount": int(specification["count"]),
        "count": int(specification["count"]),
        "inUseCount": used,
        "instanceProperties": {**fields, **_without_defaults(machine)},
        "sourceInstanceTemplate": specification.get("sourceInstanceTemplate") or "",
    }


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_defaults(v) for k, v in value.items() if k != "__defaults"}
    return [_without_defaults(v) for v in value] if isinstance(value, list) else value


TYPES: Final[dict[str, ResourceType]] = {
    INSTANCE: Instance(
        "instance", noun="instance", verifies_updates=True, rules={"name": check.gce_name}
    ),
    RESERVATION: Reservation(
        "Reservation",
        noun="reservation",
        rules={"specificReservation.count": check.reservation_count},
    ),
}
