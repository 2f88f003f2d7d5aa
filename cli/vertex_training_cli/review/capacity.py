"""Reservations of a plan: what they cost before and after it, used or not, and what they give back.

Machines that are given back are sold to whoever asks first. A reservation that is made anew, for
example with other GPUs, is deleted first, since both have one name; so is one in another zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import Rate
from vertex_training.catalog.resource_types import RESERVATION
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.risk import LOST, Quote, told_alike


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


@dataclass(frozen=True, slots=True)
class ReservationChange:
    """A reservation before and after the plan; None where there is none."""

    old: ReservationCost | None
    new: ReservationCost | None

    @property
    def either(self) -> ReservationCost:
        """The reservation after the plan, or before it if it is deleted."""
        found = self.new or self.old
        assert found is not None  # a step has a state on one side at least
        return found

    @property
    def monthly(self) -> float | None:
        """USD a month that it costs more than before; None without a price or a number."""
        sides = [each.hourly if each else 0.0 for each in (self.old, self.new)]
        old, new = sides
        return None if old is None or new is None else (new - old) * costs.HOURS_A_MONTH


@dataclass(frozen=True, slots=True, order=True)
class ReturnedMachines:
    """Machines of a reservation that a plan gives back."""

    name: str
    machine_type: str
    zone: str
    machines: int
    """How many; 0 if that is not known yet."""
    replaced: bool
    """Whether the reservation is made anew: it asks for machines after it has given these back."""


def returned_machines(plan: Plan) -> list[ReturnedMachines]:
    """What deleted, replaced and reduced reservations give back; none that the engine refuses."""
    found = (_returned(step) for step in plan.changed if step.type == RESERVATION)
    return sorted(each for each in found if each is not None)


def _returned(step: Step) -> ReturnedMachines | None:
    if step.old is None:
        return None
    old, replaced = _reserved(step, step.old.inputs), step.op == "replace"
    machines = old.machines
    if step.new is not None and not replaced:  # no protection keeps it from shrinking
        left = _reserved(step, step.new.inputs).machines
        if not left or left >= machines:
            return None
        machines -= left
    elif step.is_protected:
        return None
    return ReturnedMachines(old.name, old.machine_type, old.zone, machines, replaced)


def reservation_changes(plan: Plan) -> list[ReservationChange]:
    """Reservations of which the plan changes machines, place or number, by name."""
    steps = (step for step in plan.changed if step.type == RESERVATION)
    changes = (
        ReservationChange(
            step.old and _reserved(step, step.old.inputs),
            step.new and _reserved(step, step.new.inputs),
        )
        for step in steps
    )
    found = (each for each in changes if each.old != each.new)
    return sorted(found, key=lambda each: each.either.name)


def _reserved(step: Step, inputs: Mapping[str, Any]) -> ReservationCost:
    specific = as_mapping(inputs.get("specificReservation"))
    machine = as_mapping(specific.get("instanceProperties"))
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


def _machines(found: ReturnedMachines, quote: Quote) -> str:
    number = f"{found.machines or 'an unknown number'} x {quote(found.machine_type)}"
    anew = ", made anew" if found.replaced else ""
    return f"{quote(found.name)} ({number} in {quote(found.zone)}{anew})"


RETURNED: Final = told_alike(
    returned_machines,
    _machines,
    "returnedMachines",
    "machines given back, and may not be had again",
    LOST,
    "destroys",
)
