"""Faults asked for by one process and met by another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Service
from localgcp.faults.table import FaultTable
from tests.unit.localcloud.conftest import wait_until

DROP = Fault.parse(service="jobs", kind="drop", times=3)
HOLD = Fault.parse(service="jobs", kind="hold")


@pytest.fixture
def table(tmp_path: Path) -> FaultTable:
    return FaultTable(tmp_path / "faults.sqlite")


def count_call(table: FaultTable, method: str = "CreateCustomJob") -> list[int]:
    taken = table.count_call(Service.JOBS, method, lambda _: [], lambda _: True)
    return [entry.id for entry in taken]


def test_a_held_call_goes_on_when_released_and_later_ones_pass(table: FaultTable) -> None:
    held = table.add(HOLD)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(table.hold, held, "CreateCustomJob x", threading.Event())
        assert table.wait_held(held, 60) == "CreateCustomJob x"
        assert table.release(held) == ("CreateCustomJob x",)
        assert waiting.result(60) is True
    assert table.get(held).held == ()
    assert count_call(table) == []


def test_a_held_call_ends_when_its_fault_is_cleared_or_the_server_stops(table: FaultTable) -> None:
    stopping = threading.Event()
    cleared, stopped = table.add(HOLD), table.add(HOLD)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(table.hold, cleared, "one", stopping)
        second = pool.submit(table.hold, stopped, "two", stopping)
        wait_until(lambda: all(entry.held for entry in table.entries()))
        table.clear(cleared)
        assert first.result(60) is False
        stopping.set()
        assert second.result(60) is False


def test_what_cannot_be_done_is_said_in_words(table: FaultTable) -> None:
    with pytest.raises(LocalCloudError) as told:
        table.clear(7)
    assert (told.value.message, told.value.hint) == (
        "fault 7 does not exist.", "`vt local fault list` lists the faults.",
    )  # fmt: skip
    drop, hold = table.add(DROP), table.add(HOLD)
    with pytest.raises(LocalCloudError, match=f"^fault {drop} has kind drop; only faults of kind"):
        table.release(drop)
    with pytest.raises(LocalCloudError, match=f"^fault {hold} held no call within 0 s."):
        table.wait_held(hold, 0)


def test_programs_get_what_was_asked_for_and_what_became_of_it(table: FaultTable) -> None:
    added = table.add(Fault.parse(service="jobs", kind="error", code="ABORTED", match="red", nth=2))
    for _ in range(3):
        table.count_call(Service.JOBS, "GetCustomJob", lambda _: ["red"], lambda _: True)
    [entry] = table.entries()
    assert entry.as_json() == {
        "id": added, "service": "jobs", "kind": "error", "method": "*", "match": "red",
        "when": "before", "code": "ABORTED", "replica": "", "seconds": None, "nth": 2,
        "times": None, "probability": 1.0, "seed": 0, "patch": {}, "value": None,
        "seen": 2, "fired": 1, "spent": True, "held": (),
    }  # fmt: skip
    assert entry.uses == "1 of 1"
