"""The ladder of a job in a stack file: what it is asked for with where there were no machines."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import Section, form

#: Why no rung leaves the region of the stack.
OTHER_REGION: Final = (
    "a rung stays in the stack's region: buckets, network, key and images of the job are there; a "
    "job elsewhere reads them across regions or not at all; another region is another stack"
)


class Rung(Section):
    """What one rung has otherwise than the job file; all else is as the job file says.

    A rung with a ``machineType`` names the whole machine: accelerators of the file are left out. A
    rung uses the reservation that it names, and none without one.
    """

    strategy: Literal["STANDARD", "SPOT", "FLEX_START"] | None = None
    """How its machines are got; that of the job file without it, STANDARD beside a reservation."""
    max_wait_duration: Annotated[str, form(r"[0-9]{1,9}s", "3600s")] | None = None
    """How long FLEX_START waits for machines; ``0s`` is for ever, so no rung would follow."""
    machine_type: str | None = None
    """Machine type of every pool that has the machine of the first one."""
    accelerator_type: str | None = None
    """Accelerator of those pools."""
    accelerator_count: Annotated[int, Field(ge=1)] | None = None
    """How many of them a machine has."""
    reservation: str | None = None
    """Key in ``reservations``, or ``projects/P/zones/ZONE/reservations/NAME``."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _stays_in_region(cls, given: Any) -> Any:
        if isinstance(given, dict) and "region" in given:
            raise ValueError(OTHER_REGION)
        return given

    @pydantic.model_validator(mode="after")
    def _changes_something(self) -> Rung:
        if not self.model_fields_set:
            raise ValueError("changes nothing: give a strategy, a machine or a reservation")
        return self
