"""Stock-outs and preemptions of jobs that really run."""

from __future__ import annotations

from typing import Any

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from tests.unit.localcloud.conftest import Cloud


def add(cloud: Cloud, kind: str, **given: Any) -> FaultTable:
    table = FaultTable(cloud.home.faults)
    table.add(Fault.parse(service="jobs", kind=kind, **given))
    return table
