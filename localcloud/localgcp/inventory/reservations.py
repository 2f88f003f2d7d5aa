"""Reservations of Compute Engine. ``localgcp.vertex.records`` counts their used machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from localgcp.inventory import machines, resource_paths
from localgcp.inventory.store import Store, StoredResource, project_number

RESERVATION: Final = "gcp:compute/reservation:Reservation"


@dataclass(frozen=True)
class Shape:
    """Machine type and accelerators. A reservation serves machines of an equal shape."""

    machine_type: str
    accelerator: str = ""
    """Vertex AI's name of the accelerator, such as ``NVIDIA_L4``."""
    count: int = 0

    def __str__(self) -> str:
        gpus = f" with {self.count} x {self.accelerator}" if self.accelerator else ""
        return self.machine_type + gpus


@dataclass(frozen=True)
class Reservation:
    """One existing reservation."""

    path: str
    project: str
    zone: str
    count: int
    shape: Shape
    local_ssds: int
    by_name_only: bool
    """``specificReservationRequired``: only jobs that name the reservation can use it."""
    service_share_type: str
    share_type: str
    shared_with: frozenset[str]
    """Ids and numbers of the other projects that may use the reservation."""

    @property
    def region(self) -> str:
        """Return the region of the reservation's zone."""
        return self.zone.rpartition("-")[0]

    def open_to(self, project: str) -> bool:
        """Return whether jobs of the project with this id may use the reservation."""
        # All local projects belong to one organization.
        if project == self.project or self.share_type == "ORGANIZATION":
            return True
        return not self.shared_with.isdisjoint({project, project_number(project)})


def find(store: Store, link: str) -> Reservation | None:
    """Return the reservation ``projects/P/zones/Z/reservations/R``, or None."""
    # The link may also name a block and a sub-block of the reservation.
    path = resource_paths.canonical(store, "/".join(link.split("/")[:6]))
    resource = store.get(RESERVATION, path)
    return read(resource) if resource and not over(resource.outputs) else None


def everywhere(store: Store) -> Iterator[Reservation]:
    """Yield the reservations of all projects."""
    for resource in store.list(RESERVATION):
        if not over(resource.outputs):
            yield read(resource)


def over(outputs: dict[str, Any]) -> bool:
    """Return whether the time of the reservation's automatic deletion has passed."""
    at = outputs.get("deleteAtTime")
    return bool(at) and datetime.fromisoformat(at) <= datetime.now(UTC)


def read(resource: StoredResource) -> Reservation:
    """Return the reservation of a stored resource."""
    values = resource.outputs
    specific = values["specificReservation"]
    machine = specific.get("instanceProperties") or {}
    share = values.get("shareSettings") or {}
    policy = values.get("reservationSharingPolicy") or {}
    maps = share.get("projectMaps") or []
    projects = {str(value) for map_ in maps for value in map_.values() if value}
    return Reservation(
        path=resource.id,
        project=resource.project,
        zone=resource_paths.short_name(values["zone"]),
        count=int(specific["count"]),
        shape=shape_of(machine),
        local_ssds=len(machine.get("localSsds") or []),
        by_name_only=bool(values.get("specificReservationRequired")),
        service_share_type=policy.get("serviceShareType") or "DISALLOW_ALL",
        share_type=share.get("shareType") or "LOCAL",
        shared_with=frozenset(projects.union(share.get("projects") or [])),
    )


def shape_of(machine: dict[str, Any]) -> Shape:
    """Return the shape of ``instanceProperties``; some machine types imply GPUs."""
    name = machine.get("machineType") or ""
    for gpus in machine.get("guestAccelerators") or []:
        kind = str(gpus["acceleratorType"]).upper().replace("-", "_")
        return Shape(name, resource_paths.short_name(kind), int(gpus["acceleratorCount"]))
    return Shape(name, *machines.BUILT_IN_GPUS.get(name, ("", 0)))
