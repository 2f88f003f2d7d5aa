"""Reservations, persistent resources, and accelerators that are hard to get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule

RESERVATIONS: Final = GUIDES + "training/use-reservations"
COMPUTE: Final = GUIDES + "training/configure-compute"
AFFINITY_TYPES: Final = TYPES + "reservation_affinity.py"
KEY: Final = "compute.googleapis.com/reservation-name"
PROJECT: Final = r"(?:[a-z][a-z0-9.:-]*[a-z0-9]|[0-9]+)"
RESERVATION: Final = re.compile(
    rf"projects/{PROJECT}/zones/([a-z]+-[a-z]+[0-9]+)-[a-z]/reservations/"
    r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
    r"(/reservationBlocks/[a-z0-9-]+(/reservationSubBlocks/[a-z0-9-]+)?)?\Z"
)
PERSISTENT_ID: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
#: Compute Engine makes these as Spot or Flex-start machines only.
NEVER_STANDARD: Final = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
#: "A shared reservation or Spot VMs are recommended."
SCARCE: Final = ("NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200")


def _affinities(job: Job) -> Iterator[tuple[Pool, dict, tuple[str | int, ...]]]:
    for pool in job.pools:
        if pool.affinity is not None:
            yield pool, pool.affinity, (*pool.machine_path, "reservationAffinity")


@rule("reservation-type", AFFINITY_TYPES)
def reservation_type(job: Job) -> Iterator[Finding]:
    """A reservationAffinity says which type it is."""
    for _, affinity, path in _affinities(job):
        kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
        if kind == "TYPE_UNSPECIFIED":
            hint = "ANY_RESERVATION, SPECIFIC_RESERVATION or NO_RESERVATION"
            what = "reservationAffinityType is missing"
            yield Finding(path, what, "", hint, "reservationAffinityType")


@rule("reservation-specific", AFFINITY_TYPES)
def reservation_specific(job: Job) -> Iterator[Finding]:
    """SPECIFIC_RESERVATION names its key and the reservations."""
    for _, affinity, path in _affinities(job):
        if affinity.get("reservationAffinityType") != "SPECIFIC_RESERVATION":
            continue
        for field, hint in (("key", KEY), ("values", "[projects/P/zones/Z/reservations/NAME]")):
            if not affinity.get(field):
                yield Finding(path, f"{field} is missing", "", f"{field}: {hint}", field)


@rule("reservation-key", AFFINITY_TYPES)
def reservation_key(job: Job) -> Iterator[Finding]:
    """The key of a reservation is compute.googleapis.com/reservation-name."""
    for _, affinity, path in _affinities(job):
        if affinity.get("key") and affinity["key"] != KEY:
            yield Finding((*path, "key"), "no key of reservations", affinity["key"], f"write {KEY}")


@rule("reservation-name", AFFINITY_TYPES)
def reservation_name(job: Job) -> Iterator[Finding]:
    """A reservation is named in full: projects/P/zones/Z/reservations/NAME."""
    for _, affinity, path in _affinities(job):
        for index, value in enumerate(affinity.get("values", [])):
            if not RESERVATION.match(value):
                hint = "projects/PROJECT/zones/ZONE/reservations/NAME"
                yield Finding((*path, "values", index), "not a reservation's name", value, hint)


@rule("reservation-values-unused", AFFINITY_TYPES)
def reservation_values_unused(job: Job) -> Iterator[Finding]:
    """key and values are for SPECIFIC_RESERVATION only."""
    for _, affinity, path in _affinities(job):
        kind = affinity.get("reservationAffinityType")
        for field in ("key", "values"):
            if kind in ("ANY_RESERVATION", "NO_RESERVATION") and affinity.get(field):
                what = f"{kind} takes no {field}"
                hint = "remove it, or write SPECIFIC_RESERVATION"
                yield Finding((*path, field), what, "", hint)


@rule("reservation-zone", RESERVATIONS, "warning")
def reservation_zone(job: Job) -> Iterator[Finding]:
    """The reservation's zone lies in the job's region."""
    for _, affinity, path in _affinities(job):
        for index, value in enumerate(affinity.get("values", [])):
            match = RESERVATION.match(value)
            if match and job.region and match[1] != job.region:
                what = f"its zone is not in the job's region {job.region}"
                yield Finding((*path, "values", index), what, value, "a job stays in its region")


@rule("reservation-flex-start", RESERVATIONS)
def reservation_flex_start(job: Job) -> Iterator[Finding]:
    """FLEX_START does not go with reservations."""
    for pool, _, path in _affinities(job):
        if job.strategy == "FLEX_START" and pool.reserved:
            yield Finding(path, "FLEX_START cannot use a reservation", "", "remove one of the two")


@rule("reservation-spot", RESERVATIONS, "warning")
def reservation_spot(job: Job) -> Iterator[Finding]:
    """SPOT machines do not come from reservations."""
    for pool, _, path in _affinities(job):
        if job.strategy == "SPOT" and pool.reserved:
            yield Finding(
                path, "Spot machines do not use a reservation", "", "remove one of the two"
            )


@rule("reservation-persistent", RESERVATIONS)
def reservation_persistent(job: Job) -> Iterator[Finding]:
    """A job on a persistent resource has no reservation of its own."""
    for pool, _, path in _affinities(job):
        if job.spec.get("persistentResourceId") and pool.reserved:
            what = "a persistent resource has its machines already"
            yield Finding(path, what, "", "remove reservationAffinity or persistentResourceId")


@rule("reservation-required", COMPUTE)
def reservation_required(job: Job) -> Iterator[Finding]:
    """GB200 machines come from a shared reservation only."""
    for pool in job.pools:
        if pool.shape and pool.shape.reservation_required and pool.unreserved:
            what = f"reservationAffinity is missing; {pool.machine_type} needs a shared reservation"
            hint = "reservationAffinity: {reservationAffinityType: ANY_RESERVATION}"
            yield Finding(pool.machine_path, what, "", hint, "reservationAffinity")


@rule("spot-or-flex-start", "https://docs.cloud.google.com/compute/docs/gpus", "warning")
def spot_or_flex_start(job: Job) -> Iterator[Finding]:
    """H100 machines with fewer than 8 GPUs are made as Spot or Flex-start machines only."""
    for pool in job.pools:
        if pool.machine_type in NEVER_STANDARD and job.strategy == "STANDARD" and pool.unreserved:
            what = "Compute Engine makes these as Spot or Flex-start machines only"
            hint = "scheduling.strategy: FLEX_START or SPOT"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("scarce-accelerator", COMPUTE, "warning")
def scarce_accelerator(job: Job) -> Iterator[Finding]:
    """H100 mega, H200 and B200 are asked for by a reservation or SPOT, as Google recommends."""
    on_call = job.strategy == "STANDARD" and not job.spec.get("persistentResourceId")
    for pool in job.pools:
        if on_call and pool.accelerator in SCARCE and pool.unreserved:
            what = "a shared reservation or SPOT is recommended for these machines"
            hint = "without one the job may wait in the queue for long"
            path, got = pool.machine_path, pool.accelerator
            yield Finding(path, what, got, hint, missing="reservationAffinity")


@rule("persistent-resource", GUIDES + "training/persistent-resource-train", "warning")
def persistent_resource(job: Job) -> Iterator[Finding]:
    """A persistent resource is named by its id: lowercase letters, digits and hyphens."""
    given = job.spec.get("persistentResourceId")
    if given and not PERSISTENT_ID.match(given):
        hint = "the last part of its name; starts with a letter, ends with no hyphen"
        path = ("jobSpec", "persistentResourceId")
        yield Finding(path, "not an id of a persistent resource", given, hint)
