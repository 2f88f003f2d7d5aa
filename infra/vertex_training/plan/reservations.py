"""The reservations of a stack, derived from its settings: machines, grants, cost. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import costs, machines
from vertex_training.catalog.costs import HOURS_A_MONTH
from vertex_training.catalog.resource_types import ON_PROJECT
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training.settings.network import Reservation

#: Label key of a reservation's name, as affinities take it.
KEY: Final = "compute.googleapis.com/reservation-name"


@dataclass(frozen=True, slots=True)
class ReservationPlan:
    """One reservation."""

    key: str
    path: str
    """``projects/P/zones/Z/reservations/NAME``."""
    machine_type: str
    accelerator_type: str
    """As jobs name it, ``NVIDIA_H100_MEGA_80GB``; empty for a machine without GPUs."""
    accelerator_count: int
    settings: Reservation

    @property
    def project(self) -> str:
        """Id or number of the project that owns it."""
        return self.path.split("/")[1]

    @property
    def name(self) -> str:
        """Its short name."""
        return self.path.rsplit("/", 1)[1]

    def rate(self, region: str) -> costs.Rate | None:
        """Return the hourly price of one of its machines, used or not; None without a price."""
        kind, count = self.accelerator_type or None, self.accelerator_count
        return costs.hourly(self.machine_type, kind, count, region, fee=False)

    @property
    def affinity(self) -> dict[str, Any]:
        """``reservationAffinity`` of a job that uses it.

        An open one is not named: any job that fits uses it, https://docs.cloud.google.com/compute/docs/instances/reservations-overview
        """
        if not self.settings.specific_reservation_required:
            return {"reservationAffinityType": "ANY_RESERVATION"}
        return {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": KEY,
            "values": [self.path],
        }


def plan_reservations(settings: Settings) -> dict[str, ReservationPlan]:
    """All reservations of the stack, by key."""
    return {
        key: _plan(settings, key, reservation) for key, reservation in settings.reservations.items()
    }


def _plan(settings: Settings, key: str, reservation: Reservation) -> ReservationPlan:
    project = reservation.project or settings.project
    name = reservation.name or settings.names.reservation(key)
    made = f"projects/{project}/zones/{reservation.zone}/reservations/{name}"
    accelerator, count = accelerators(reservation)
    return ReservationPlan(
        key, reservation.existing or made, reservation.machine_type, accelerator, count, reservation
    )


def accelerators(given: Reservation) -> tuple[str, int]:
    """GPUs of one machine: those given, or those its machine type always has."""
    if given.accelerator_type:
        return given.accelerator_type, given.accelerator_count or 1
    machine = machines.machine_type(given.machine_type)
    if machine and machine.accelerator_required and len(machine.accelerators) == 1:
        [(name, counts)] = machine.accelerators.items()
        if len(counts) == 1:
            return name, counts[0]
    return "", 0


def reservation_grants(
    settings: Settings, plans: Mapping[str, ReservationPlan]
) -> list[GrantRequest]:
    """One for each project that owns a reservation which jobs name."""
    agent = f"serviceAccount:{settings.names.vertex_agent()}"
    owners: dict[str, bool] = {}
    for plan in plans.values():
        if plan.settings.specific_reservation_required:
            own = plan.project in (settings.project, settings.project_number)
            # What the stack makes in another project, it may grant there as well.
            ours = own or not plan.settings.existing
            project = settings.project if own else plan.project
            owners[project] = owners.get(project, False) or ours
    type_, role = ON_PROJECT, grants.SEE_RESERVATION
    return [
        GrantRequest(f"finds-{project}", type_, role, agent, project, ours=ours)
        for project, ours in sorted(owners.items())
    ]


def cost_lines(
    plans: Mapping[str, ReservationPlan], region: str, now: datetime.datetime
) -> list[str]:
    """A line for each reservation the stack makes: what it costs while it is there."""
    return [_cost(plan, region, now) for plan in plans.values() if not plan.settings.existing]


def _cost(plan: ReservationPlan, region: str, now: datetime.datetime) -> str:
    settings = plan.settings
    rate = plan.rate(region)
    head = f"reservation {plan.key}: {settings.count} x {plan.machine_type} in {settings.zone}"
    end = "from creation until it is deleted, used or not"
    if rate is None:
        return f"{head}: no price known; it is paid for {end}"
    hour = rate.usd * settings.count
    text = f"{head}: ${hour:,.2f} an hour, ${hour * 24:,.0f} a day"
    text += f", ${hour * HOURS_A_MONTH:,.0f} a month"
    hours = lifetime(settings, now)
    text += f", ${hour * hours:,.0f} in all" if hours is not None else ""
    where = "" if rate.exact else f", a price of {rate.region}"
    return f"{text}, {end} (list price {rate.date}, {rate.source}{where})"


def monthly(plan: ReservationPlan, region: str, now: datetime.datetime) -> float | None:
    """USD of a month, or until it deletes itself if that is sooner; None without a price."""
    rate, hours = plan.rate(region), lifetime(plan.settings, now)
    kept = HOURS_A_MONTH if hours is None else min(hours, HOURS_A_MONTH)
    return None if rate is None else rate.usd * plan.settings.count * kept


def lifetime(given: Reservation, now: datetime.datetime) -> float | None:
    """Hours until it deletes itself if it is made ``now``; None if it never does."""
    if given.delete_after_duration:
        return int(given.delete_after_duration.removesuffix("s")) / 3600
    if given.delete_at_time:
        return max(0.0, (given.delete_at_time - now).total_seconds() / 3600)
    return None
