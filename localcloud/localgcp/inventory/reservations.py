"""Compute Engine reservations, for jobs and the gcp plugin, and their used machines.

A use is a row that goes with the job's state (``localgcp.vertex.records``):
whatever ends a job gives its machines back, also the next server's start after a crash.
"""

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
    """Machine type, accelerator and count; a reservation serves machines of an equal shape."""

    machine_type: str
    accelerator: str = ""
    """Vertex AI's name of the accelerator (``NVIDIA_L4``); empty without an accelerator."""
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
    """``specificReservationRequired``: only for jobs that name the reservation (D:compute.v1)."""
    service_share_type: str
    share_type: str
    shared_with: frozenset[str]
    """Ids and numbers of the other projects that may use the reservation."""

    @property
    def region(self) -> str:
        """The region of the reservation's zone."""
        return self.zone.rpartition("-")[0]

    def open_to(self, project: str) -> bool:
        """Return whether jobs of a project (id) may use the reservation; all local projects share
        an organization.
        """
        if project == self.project or self.share_type == "ORGANIZATION":
            return True
        return not self.shared_with.isdisjoint({project, project_number(project)})


def find(store: Store, link: str) -> Reservation | None:
    """Return the reservation ``projects/P/zones/Z/reservations/R``, or None."""
    path = resource_paths.canonical(
        store, "/".join(link.split("/")[:6])
    )  # without block and sub-block
    resource = store.get(RESERVATION, path)
    return read(resource) if resource and not over(resource.outputs) else None


def everywhere(store: Store) -> Iterator[Reservation]:
    """Return all reservations of all projects."""
    for resource in store.list(RESERVATION):
        if not over(resource.outputs):
            yield read(resource)


def over(outputs: dict[str, Any]) -> bool:
    """Return whether the time at which the reservation is deleted automatically has passed."""
    at = outputs.get("deleteAtTime")
    return bool(at) and datetime.fromisoformat(at) <= datetime.now(UTC)


def read(found: StoredResource) -> Reservation:
    """Convert a stored resource to a Reservation."""
    values = found.outputs
    specific = values["specificReservation"]
    machine = specific.get("instanceProperties") or {}
    share = values.get("shareSettings") or {}
    with_projects = share.get("projectMaps") or []
    return Reservation(
        path=found.id,
        project=found.project,
        zone=resource_paths.short_name(values["zone"]),
        count=int(specific["count"]),
        shape=shape_of(machine),
        local_ssds=len(machine.get("localSsds") or []),
        by_name_only=bool(values.get("specificReservationRequired")),
        service_share_type=(values.get("reservationSharingPolicy") or {}).get("serviceShareType")
        or "DISALLOW_ALL",
        share_type=share.get("shareType") or "LOCAL",
        shared_with=frozenset(
            str(project[key]) for project in with_projects for key in project if project[key]
        )
        | frozenset(share.get("projects") or []),
    )


def shape_of(machine: dict[str, Any]) -> Shape:
    """Return the shape of ``instanceProperties``; types such as A2, A3 and G2 imply GPUs."""
    name = machine.get("machineType") or ""
    for gpus in machine.get("guestAccelerators") or []:
        kind = str(gpus["acceleratorType"]).upper().replace("-", "_")
        return Shape(name, resource_paths.short_name(kind), int(gpus["acceleratorCount"]))
    return Shape(name, *machines.BUILT_IN_GPUS.get(name, ("", 0)))
