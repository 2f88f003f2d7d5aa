"""Faults put on and taken off a local cloud, running or not: what commands and tests call."""

from __future__ import annotations

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home


def inject(home: Home, fault: Fault) -> int:
    """Add a fault, in force at once, and return its id."""
    home.create()
    return FaultTable(home.faults).add(fault)


def clear(home: Home, fault_id: int | None = None) -> int:
    """Remove one fault or all, out of force at once, and return how many.

    Raises LocalCloudError if there is no fault of this id.
    """
    return FaultTable(home.faults).clear(fault_id)
