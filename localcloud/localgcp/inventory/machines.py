"""Regions, machine types and GPUs that Compute Engine and Vertex AI accept; reservations.

``localgcp.vertex.records`` counts the used machines of reservations.

Sources: doc:training/configure-compute; https://docs.cloud.google.com/compute/docs/machine-resource
and .../compute/docs/gpus.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, StoredResource, project_number

#: GPU -> machine types that always have this GPU, with the number of GPUs.
_BUILT_IN: Final[Mapping[str, Mapping[str, int]]] = {
    "NVIDIA_L4": {
        **{f"g2-standard-{vcpus}": 1 for vcpus in (4, 8, 12, 16, 32)},
        **{"g2-standard-24": 2, "g2-standard-48": 4, "g2-standard-96": 8},
    },
    "NVIDIA_RTX_PRO_6000": {f"g4-standard-{48 * gpus}": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_TESLA_A100": {
        **{f"a2-highgpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
        "a2-megagpu-16g": 16,
    },
    "NVIDIA_A100_80GB": {f"a2-ultragpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_H100_80GB": {f"a3-highgpu-{gpus}g": gpus for gpus in (1, 2, 4, 8)},
    "NVIDIA_H100_MEGA_80GB": {"a3-megagpu-8g": 8},
    "NVIDIA_H200_141GB": {"a3-ultragpu-8g": 8},
    "NVIDIA_B200": {"a4-highgpu-8g": 8},
    "NVIDIA_GB200": {"a4x-highgpu-4g": 4},
}
#: Machine type -> accelerator and count.
BUILT_IN_GPUS: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {name: (gpu, count) for gpu, types in _BUILT_IN.items() for name, count in types.items()}
)
#: Accelerators of jobs that cannot be peered with a VPC network.
WITHOUT_VPC_PEERING: Final = frozenset(
    {"NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200"}
)
#: Machine types of Compute Engine and TPUs. Only the first row lists all numbers of vCPUs.
_MACHINE: Final = re.compile(
    r"(?:e2|n1|n2|n2d|n4)-(?:standard|highmem|highcpu)-(?:1|2|4|8|16|32|48|64|80|96|128|224)"
    r"|e2-(?:micro|small|medium)|f1-micro|g1-small"
    r"|(?:(?:e2|n1|n2|n2d|n4)-)?custom(?:-(?:micro|small|medium))?-\d+-\d+(?:-ext)?"
    r"|(?:c2d?|c3d?|c4[ad]?|n4[ad]|h3|h4d|m[1-4]|t2[ad]|x4|z3)-[a-z]+-\d+[a-z-]*|n1-(?:mega|ultra)mem-\d+"
    r"|(?:a2|a3|a4x?|ct\d\w*|g2|g4|tpu\w+)-[a-z]+-\d+[gt]?|g2-custom-\d+-\d+|cloud-tpu"
)
#: GPUs that only machines of the family N1 can have.
_OF_N1: Final = frozenset(f"NVIDIA_TESLA_{model}" for model in ("K80", "P4", "P100", "T4", "V100"))
_MULTI_REGION: Final = re.compile(r"us|eu|europe|asia|global|nam-eur-asia1|(?:[a-z]{2,4})\d{1,2}")


@cache
def _places() -> Mapping[str, Any]:
    text = resources.files("localgcp.apis").joinpath("discovery.json").read_bytes()
    return json.loads(text)["places"]


def is_region(name: str) -> bool:
    """Return whether a region exists."""
    return name in _places()["regions"]


def is_zone(name: str) -> bool:
    """Return whether a zone exists. Regions with an unknown list of zones have zones a to f."""
    region, _, letter = name.rpartition("-")
    return is_region(region) and bool(letter) and letter in _places()["zones"].get(region, "abcdef")


def is_location(name: str) -> bool:
    """Return whether a region or a multi-region such as ``EU`` or ``NAM4`` exists."""
    return is_region(name.lower()) or bool(_MULTI_REGION.fullmatch(name.lower()))


def machine_error(spec: Mapping[str, Any]) -> str:
    """Return the error of a machine type and the accelerators in a message, or an empty text."""
    name = str(spec.get("machineType") or "").rpartition("/")[2]
    if name and not _MACHINE.fullmatch(name):
        return f'Machine type "{name[:80]}" is not supported.'
    listed = [*(spec.get("accelerators") or ()), *(spec.get("guestAccelerators") or ())]
    listed.append({"type": spec.get("acceleratorType"), "count": spec.get("acceleratorCount")})
    for accelerator in listed:
        type_ = str(accelerator.get("type") or accelerator.get("acceleratorType") or "")
        type_ = type_.rpartition("/")[2]
        if type_ and (text := _accelerator_error(name, type_, accelerator.get("count"))):
            return text
    return ""


def _accelerator_error(machine: str, accelerator: str, count: Any) -> str:
    gpu = accelerator.upper().replace("-", "_").removesuffix("_VWS")
    if re.fullmatch(r"TPU_\w+", gpu):
        return ""
    if gpu not in _OF_N1 | _BUILT_IN.keys():
        return f'Accelerator "{accelerator[:80]}" does not exist.'
    built_in, most = BUILT_IN_GPUS.get(machine, ("", 0))
    if not machine or machine.startswith(("custom-", "g2-custom-")):
        return ""
    fits = gpu == built_in if built_in else machine.startswith("n1-") and gpu in _OF_N1
    if not fits:
        return f'Accelerator "{accelerator}" is not supported for machine type "{machine}".'
    too_many = built_in and int(count or 0) > most
    return f'{machine} has {most} of "{accelerator}", not {count}.' if too_many else ""


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


def find_reservation(store: Store, link: str) -> Reservation | None:
    """Return the reservation ``projects/P/zones/Z/reservations/R``, or None."""
    # The link may also name a block and a sub-block of the reservation.
    path = resource_paths.canonical(store, "/".join(link.split("/")[:6]))
    resource = store.get(RESERVATION, path)
    return read_reservation(resource) if resource and not has_ended(resource.outputs) else None


def all_reservations(store: Store) -> Iterator[Reservation]:
    """Yield the reservations of all projects."""
    for resource in store.list(RESERVATION):
        if not has_ended(resource.outputs):
            yield read_reservation(resource)


def has_ended(outputs: dict[str, Any]) -> bool:
    """Return whether the time of the reservation's automatic deletion has passed."""
    at = outputs.get("deleteAtTime")
    return bool(at) and datetime.fromisoformat(at) <= datetime.now(UTC)


def read_reservation(resource: StoredResource) -> Reservation:
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
    return Shape(name, *BUILT_IN_GPUS.get(name, ("", 0)))
