"""Reservations: machines kept, and paid for, until they are deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.services.base import ExistingResource
from localgcp.gcp.services.network.compute import Compute, in_use, invalid
from localgcp.inventory import reservations, resource_paths
from localgcp.vertex.records import JobTable

_ZONE: Final = re.compile(r"^[a-z]+-[a-z]+\d+-[a-z]$")


@dataclass(frozen=True)
class Reservation(Compute):
    """A reservation (``gcp.compute.Reservation``); ``inUseCount`` is what jobs hold of it now."""

    rules: ClassVar = {"specificReservation.count": rules.reservation_count}

    title: str = "Reservation"
    noun: str = "reservation"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        zone = self._part(cloud, inputs, "zone")
        if not _ZONE.fullmatch(zone):
            raise invalid(doing, "zone", zone, "Unknown zone.")
        share = inputs.get("shareSettings") or {}
        projects = share.get("projectMaps") or share.get("projects")
        if share.get("shareType") == "SPECIFIC_PROJECTS" and not projects:
            reason = "SPECIFIC_PROJECTS needs at least one project."
            raise invalid(doing, "shareSettings.projectMap", "", reason)
        if share.get("shareType") == "LOCAL" and projects:
            reason = "A LOCAL reservation is shared with no project."
            raise invalid(doing, "shareSettings.projectMap", "", reason)
        at = _deleted_at(inputs)
        try:
            is_past = bool(at) and datetime.fromisoformat(at) <= datetime.now(UTC)
        except (TypeError, ValueError):  # no time, or one without a zone
            reason = "Must be a time of RFC 3339."
            raise invalid(doing, "deleteAtTime", at, reason) from None
        if is_past:
            raise invalid(doing, "deleteAtTime", at, "Must be in the future.")
        id_ = self.id(cloud, inputs)
        former = cloud.store.get(cloud.type.token, id_)
        if former and reservations.over(former.outputs):
            cloud.store.delete(cloud.type.token, id_)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        zone = f"projects/{project}/zones/{self._part(cloud, inputs, 'zone')}"
        made = super().make(cloud, project, id_, inputs)
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
        found = super().read(cloud, id_)
        if found is None or reservations.over(found.outputs):
            return None
        used = JobTable(cloud.store.path).used(found.id)
        specific = {**found.outputs["specificReservation"], "inUseCount": used}
        return ExistingResource(
            found.id, found.inputs, {**found.outputs, "specificReservation": specific}
        )

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        used = JobTable(cloud.store.path).used(id_)
        count = int(inputs["specificReservation"]["count"])
        if count < used:
            doing = f"Error updating {self.title} {id_!r}"
            reason = f"The reservation has {used} instances in use and cannot shrink below that."
            raise invalid(doing, "specificReservation.count", count, reason)
        return {
            "zone": olds["zone"],
            "deleteAtTime": _deleted_at(inputs) or olds.get("deleteAtTime") or "",
            "shareSettings": _share(inputs),
            "specificReservation": _specific(inputs, used),
        }

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        # https://cloud.google.com/compute/docs/instances/reservations-delete: machines that
        # consume one which is open to all keep running.
        jobs = JobTable(cloud.store.path)
        if olds.get("specificReservationRequired") and (users := jobs.users(id_)):
            user = users[0].name
            raise in_use(f"Error deleting {self.title}", self.noun, id_, user)
        super().unmake(cloud, id_, olds)


def _deleted_at(inputs: Mapping[str, Any]) -> str:
    """When it deletes itself, as the API returns it; "" if it does not."""
    if at := text(dict(inputs), "deleteAtTime"):
        return at
    after = (inputs.get("deleteAfterDuration") or {}).get("seconds")
    if not after:
        return ""
    created = datetime.fromisoformat(now())
    return (created + timedelta(seconds=int(after))).isoformat().replace("+00:00", "Z")


def _share(inputs: Mapping[str, Any]) -> dict[str, Any]:
    given = _without_defaults(inputs.get("shareSettings") or {})
    maps = given.get("projectMaps") or []
    return {
        "projectMaps": [
            {**each, "projectId": each.get("projectId") or each["id"]} for each in maps
        ],
        "projects": given.get("projects") or [],
        "shareType": given.get("shareType") or "LOCAL",
    }


def _specific(inputs: Mapping[str, Any], used: int) -> dict[str, Any]:
    """The block as the API returns it: every field, and what is used."""
    given = inputs["specificReservation"]
    machine = given.get("instanceProperties") or {}
    fields = {"guestAccelerators": [], "localSsds": [], "locationHint": "", "machineType": ""}
    fields |= {"maintenanceInterval": "", "minCpuPlatform": ""}
    return {
        "assuredCount": int(given["count"]),
        "count": int(given["count"]),
        "inUseCount": used,
        "instanceProperties": {**fields, **_without_defaults(machine)},
        "sourceInstanceTemplate": given.get("sourceInstanceTemplate") or "",
    }


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_defaults(v) for k, v in value.items() if k != "__defaults"}
    return [_without_defaults(v) for v in value] if isinstance(value, list) else value
