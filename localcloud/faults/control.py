"""Faults put on and taken off a local cloud, running or not: what commands and tests call."""

from __future__ import annotations

import time
from typing import Final

from infra.errors import LocalCloudError
from localcloud import lifecycle
from localcloud.faults.model import Fault, Service
from localcloud.faults.table import FaultTable
from localcloud.home import Home

_POLL_SECONDS: Final = 0.02
_FRONT_SECONDS: Final = 30.0


def inject(home: Home, fault: Fault) -> int:
    """Add a fault and return its id once it is in force.

    Raises LocalCloudError if the proxy for storage does not come to stand before the emulator.
    """
    home.create()
    table = FaultTable(home.faults)
    fault_id = table.add(fault)
    _wait_for_front(home, table)
    return fault_id


def clear(home: Home, fault_id: int | None = None) -> int:
    """Remove one fault or all, and return how many once they are out of force.

    Raises LocalCloudError as ``inject``, and if there is no fault of this id.
    """
    table = FaultTable(home.faults)
    cleared = table.clear(fault_id)
    _wait_for_front(home, table)
    return cleared


def _wait_for_front(home: Home, table: FaultTable) -> None:
    """Until a running server has put the proxy before its storage, or taken it away."""
    deadline = time.monotonic() + _FRONT_SECONDS
    while lifecycle.running(home):
        wanted = any(entry.fault.service is Service.STORAGE for entry in table.entries())
        if wanted == bool(table.front()):
            return
        if time.monotonic() > deadline:
            raise LocalCloudError(
                f"the proxy for storage faults did not change within {_FRONT_SECONDS:.0f} s.",
                f"see {home.server_log}.",
            )
        time.sleep(_POLL_SECONDS)
