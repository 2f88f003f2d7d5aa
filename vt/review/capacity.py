"""Reservations of a plan: what those cost that it makes or changes, used or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra.catalog import costs
from infra.catalog.costs import Rate
from vt.engine.plan import Plan, Step

#: Type of a reservation's resource.
RESERVATION: Final = "gcp:compute/reservation:Reservation"


@dataclass(frozen=True, slots=True)
class ReservationCost:
    """Machines that are kept, and paid for, from creation until the reservation is deleted."""

    name: str
    zone: str
    machine_type: str
    machines: int
    """How many; 0 if that is not known yet."""
    rate: Rate | None
    """Of one machine, without Vertex AI's fee; None if no source has a price."""

    @property
    def hourly(self) -> float | None:
        """USD an hour of all machines; None without a price or a number of machines."""
        return self.rate.usd * self.machines if self.rate and self.machines else None


def reservation_costs(plan: Plan) -> list[ReservationCost]:
    """Reservations that the plan makes or changes, by name."""
    steps = (step for step in plan.changed if step.type == RESERVATION and step.new)
    return sorted((_reserved(step) for step in steps), key=lambda each: each.name)


def _reserved(step: Step) -> ReservationCost:
    inputs = step.inputs
    specific = _object(inputs.get("specificReservation"))
    machine = _object(specific.get("instanceProperties"))
    machine_type, zone = str(machine.get("machineType", "")), str(inputs.get("zone", ""))
    count, (accelerator, gpus) = specific.get("count"), _accelerator(machine)
    region = zone.rpartition("-")[0]
    return ReservationCost(
        name=str(inputs.get("name") or step.name),
        zone=zone,
        machine_type=machine_type,
        machines=int(count) if isinstance(count, int | float) else 0,
        rate=costs.hourly(machine_type, accelerator or None, gpus, region, fee=False),
    )


def _accelerator(machine: Mapping[str, Any]) -> tuple[str, int]:
    """GPUs that are added to the machine, as jobs name them; none where its type has them."""
    for each in machine.get("guestAccelerators") or ():
        # Compute Engine's nvidia-tesla-t4 is Vertex AI's NVIDIA_TESLA_T4.
        name = str(each.get("acceleratorType", "")).rpartition("/")[2]
        return name.upper().replace("-", "_"), int(each.get("acceleratorCount", 0))
    return "", 0


def _object(value: object) -> Mapping[str, Any]:
    """An input that is an object; empty while it is not known."""
    return value if isinstance(value, Mapping) else {}
