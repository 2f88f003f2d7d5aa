"""A stack's reservations, planned from its settings: machines, grants and cost."""

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

SPECIFIC: Final = "SPECIFIC_RESERVATION"
#: Key of a reservation's name in affinities.
KEY: Final = "compute.googleapis.com/reservation-name"


@dataclass(frozen=True, slots=True)
class ReservationPlan:
    """A planned or existing reservation of the stack."""

    key: str
    path: str
    """Full name: ``projects/P/zones/Z/reservations/NAME``."""
    machine_type: str
    accelerator_type: str
    """Accelerator type in the form of jobs, like ``NVIDIA_H100_MEGA_80GB``; empty without GPUs."""
    accelerator_count: int
    settings: Reservation

    @property
    def project(self) -> str:
        """Return the id or number of the project that owns the reservation."""
        return self.path.split("/")[1]

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]

    def rate(self, region: str) -> costs.Rate | None:
        """Return the hourly price of one reserved machine; None without a known price."""
        kind, count = self.accelerator_type or None, self.accelerator_count
        return costs.hourly(self.machine_type, kind, count, region, fee=False)

    @property
    def affinity(self) -> dict[str, Any]:
        """Return the ``reservationAffinity`` of a job that uses the reservation."""
        # Any matching job uses an open reservation:
        # https://docs.cloud.google.com/compute/docs/instances/reservations-overview
        if not self.settings.specific_reservation_required:
            return {"reservationAffinityType": "ANY_RESERVATION"}
        return {"reservationAffinityType": SPECIFIC, "key": KEY, "values": [self.path]}


def plan_reservations(settings: Settings) -> dict[str, ReservationPlan]:
    """Plan all reservations of the stack, by key."""
    plans = dict[str, ReservationPlan]()
    for key, reservation in settings.reservations.items():
        project = reservation.project or settings.project
        name = reservation.name or settings.names.reservation(key)
        created = f"projects/{project}/zones/{reservation.zone}/reservations/{name}"
        path, machine = reservation.existing or created, reservation.machine_type
        plans[key] = ReservationPlan(key, path, machine, *accelerators(reservation), reservation)
    return plans


def accelerators(given: Reservation) -> tuple[str, int]:
    """Return type and number of a machine's GPUs, from the settings or the machine type."""
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
    """Return a grant on each project that owns a reservation of jobs."""
    agent = f"serviceAccount:{settings.names.vertex_agent()}"
    owners: dict[str, bool] = {}
    for plan in plans.values():
        if plan.settings.specific_reservation_required:
            own = plan.project in (settings.project, settings.project_number)
            # The stack may grant in another project where it creates reservations.
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
    """Return a line with the cost of each reservation that the stack creates."""
    return [_cost(plan, region, now) for plan in plans.values() if not plan.settings.existing]


def _cost(plan: ReservationPlan, region: str, now: datetime.datetime) -> str:
    settings = plan.settings
    rate = plan.rate(region)
    head = f"reservation {plan.key}: {settings.count} x {plan.machine_type} in {settings.zone}"
    end = "from creation to deletion, used or unused"
    if rate is None:
        return f"{head}: no known price; billed {end}"
    hour = rate.usd * settings.count
    text = f"{head}: ${hour:,.2f} an hour, ${hour * 24:,.0f} a day"
    text += f", ${hour * HOURS_A_MONTH:,.0f} a month"
    hours = lifetime(settings, now)
    text += f", ${hour * hours:,.0f} in total" if hours is not None else ""
    where = "" if rate.exact else f", for region {rate.region}"
    return f"{text}, billed {end} (list price {rate.date}, {rate.source}{where})"


def monthly(plan: ReservationPlan, region: str, now: datetime.datetime) -> float | None:
    """Return the cost in USD for a month, or for a shorter lifetime; None without a price."""
    rate, hours = plan.rate(region), lifetime(plan.settings, now)
    kept = HOURS_A_MONTH if hours is None else min(hours, HOURS_A_MONTH)
    return None if rate is None else rate.usd * plan.settings.count * kept


def lifetime(given: Reservation, now: datetime.datetime) -> float | None:
    """Return the hours until Google deletes the reservation; None if it never does."""
    if given.delete_after_duration:
        return int(given.delete_after_duration.removesuffix("s")) / 3600
    if given.delete_at_time:
        return max(0.0, (given.delete_at_time - now).total_seconds() / 3600)
    return None
