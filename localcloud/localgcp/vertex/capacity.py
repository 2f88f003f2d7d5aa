"""Finds and claims the machines of reservations that a job may use.

Sources: doc:training/use-reservations, doc:predictions/use-reservations, D:compute.v1. Texts are
ours. A job stays PENDING while its reservation is used up; a job that never fits is FAILED.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory.machines import Reservation, Shape, all_reservations, find_reservation
from localgcp.inventory.store import VIEWER, Store, has_role, service_agent
from localgcp.vertex.records import JobRecord, JobTable

ANY, SPECIFIC = "ANY_RESERVATION", "SPECIFIC_RESERVATION"


@dataclass
class Plan:
    """The machines that a job needs, by reservation, and log lines about them."""

    wanted: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    short: str = ""
    """Error text for missing machines; empty if the job can start."""

    def take(self, at: str, found: Iterable[Reservation], left: int, jobs: JobTable | None) -> int:
        """Reserve up to ``left`` machines in order; return the number of missing machines."""
        for reservation in found:
            if taken := min(left, self.free(reservation, jobs)):
                self.wanted[reservation.path] = self.wanted.get(reservation.path, 0) + taken
                self.limits[reservation.path] = reservation.count
                self.notes.append(f"{at}: {taken} of reservation {reservation.path}")
                left -= taken
        return left

    def free(self, reservation: Reservation, jobs: JobTable | None) -> int:
        """Return the free machines of a reservation, without those that jobs or this plan use."""
        used = jobs.used(reservation.path) if jobs else 0
        return max(0, reservation.count - used - self.wanted.get(reservation.path, 0))


def admit(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job's reservations can never serve the job."""
    made = plan(store, None, job)
    if made.short:
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, f"{made.short} in all.")


def plan(store: Store, jobs: JobTable | None, job: JobRecord) -> Plan:
    """Return the machines that a job needs; without ``jobs``, as if no other job used machines.

    Raises StartRefusedError.
    """
    made = Plan()
    for index, pool in enumerate(job.spec.get("workerPoolSpecs", [])):
        affinity = pool.get("machineSpec", {}).get("reservationAffinity", {})
        kind, at = affinity.get("reservationAffinityType"), f"workerpool{index}"
        if kind == SPECIFIC:
            named = list(_named(store, job, at, pool))
            machines = int(pool.get("replicaCount", 1))
            if made.take(at, named, machines, jobs):
                names = ", ".join(affinity.get("values", []))
                total = sum(reservation.count for reservation in named)
                made.short = f"{at} requests {machines} machines; {names} has {total}"
        elif kind == ANY:
            _any(store, jobs, job, at, pool, made)
    return made


def _any(
    store: Store, jobs: JobTable | None, job: JobRecord, at: str, pool: dict[str, Any], made: Plan
) -> None:
    shape, zones = _shape(pool), defaultdict[str, list[Reservation]](list)
    for reservation in all_reservations(store):
        is_fitting = (reservation.region, reservation.shape) == (job.region, shape)
        if is_fitting and not _why_not(reservation, job):
            zones[reservation.zone].append(reservation)
    if not zones:
        note = f"no open reservation of {shape} in {job.region}; using on-demand machines"
        made.notes.append(f"{at}: {note}")
        return
    free = {zone: sum(made.free(r, jobs) for r in zones[zone]) for zone in sorted(zones)}
    zone = max(free, key=lambda name: free[name])
    if left := made.take(at, zones[zone], int(pool.get("replicaCount", 1)), jobs):
        reason = "because its reservations have too few free machines"
        made.notes.append(f"{at}: {left} on demand in {zone}, {reason}")


def _named(store: Store, job: JobRecord, at: str, pool: dict[str, Any]) -> Iterator[Reservation]:
    """Yield the reservations that a pool names. Raises StartRefusedError."""
    shape, agent = _shape(pool), service_agent(job.project)
    for value in pool["machineSpec"]["reservationAffinity"].get("values", []):
        resource = find_reservation(store, value)
        if resource is None:
            text = f"{at}: the reservation {value} does not exist or is not visible."
            raise StartRefusedError(RpcCode.NOT_FOUND, text)
        if not has_role(store, agent, VIEWER, f"projects/{resource.project}"):
            text = (
                f"{agent} does not have compute.reservations.get on {value}. Grant "
                f"roles/compute.viewer to this service agent in project {resource.project}."
            )
            raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)
        reason = _why_not(resource, job, by_name=True)
        if not reason and resource.shape != shape:
            reason = f"has machines of {resource.shape}, the job requests {shape}"
        if reason:
            text = f"{at}: the reservation {value} {reason}."
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        yield resource


def _why_not(reservation: Reservation, job: JobRecord, *, by_name: bool = False) -> str:
    if reservation.service_share_type != "ALLOW_ALL":
        return "is not shared with Vertex AI (reservationSharingPolicy.serviceShareType: ALLOW_ALL)"
    if not reservation.open_to(job.project):
        return f"is not shared with project {job.project} (shareSettings)"
    if reservation.local_ssds:
        return "has manually attached local SSDs, which Vertex AI does not support"
    if reservation.by_name_only and not by_name:
        return "can only be consumed by name"
    return ""


def _shape(pool: dict[str, Any]) -> Shape:
    machine = pool["machineSpec"]
    count = int(machine.get("acceleratorCount", 0))
    return Shape(machine["machineType"], machine.get("acceleratorType", ""), count)
