"""Faults asked for by one process and met by another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.faults.model import Fault, Kind, Service
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


def test_without_a_fault_no_file_is_made(table: FaultTable) -> None:
    assert (count_call(table), table.entries(), table.clear()) == ([], (), 0)
    assert not table.path.exists()


def test_a_fault_is_met_by_another_process_and_counted(table: FaultTable) -> None:
    added = table.add(DROP)
    assert count_call(FaultTable(table.path)) == [added]
    [entry] = table.entries()
    assert (entry.fault, entry.seen, entry.fired, entry.uses) == (DROP, 1, 1, "1 of 3")


def test_many_calls_at_once_meet_it_as_often_as_asked(table: FaultTable) -> None:
    table.add(DROP)
    with ThreadPoolExecutor(8) as pool:
        met = sum(len(found) for found in pool.map(lambda _: count_call(table), range(40)))
    assert met == 3
    assert table.entries()[0].spent


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
        "there is no fault 7.", "`vt local fault list` shows them.",
    )  # fmt: skip
    drop, hold = table.add(DROP), table.add(HOLD)
    with pytest.raises(LocalCloudError, match=f"^fault {drop} is of kind drop; only hold holds."):
        table.release(drop)
    with pytest.raises(LocalCloudError, match=f"^fault {hold} held no call within 0 s."):
        table.wait_held(hold, 0)


def test_clearing_all_takes_all(table: FaultTable) -> None:
    table.add(DROP)
    table.add(HOLD)
    assert (table.clear(), table.entries()) == (2, ())


def test_one_is_cleared_and_the_others_stay(table: FaultTable) -> None:
    first, second, third = (table.add(DROP) for _ in range(3))
    assert table.clear(second) == 1
    assert [entry.id for entry in table.entries()] == [first, third]
    with pytest.raises(LocalCloudError, match=f"no fault {second}"):
        table.get(second)


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


def test_one_without_a_limit_is_never_spent(table: FaultTable) -> None:
    table.add(Fault.parse(service="jobs", kind="drop", times=0))
    for _ in range(3):
        count_call(table)
    [entry] = table.entries()
    assert (entry.uses, entry.spent, entry.seen) == ("3", False, 3)


def test_a_call_is_counted_only_where_it_fits_and_is_accepted(table: FaultTable) -> None:
    """Texts of a call are looked up only if a fault asks for one."""
    jobs = table.add(Fault.parse(service="jobs", kind="drop", method="GetCustomJob", times=0))
    named = table.add(Fault.parse(service="jobs", kind="drop", match="red", times=0))
    table.add(Fault.parse(service="models", kind="drop", times=0))
    held = table.add(HOLD)
    asked: list[int] = []

    def call(method: str, *texts: str) -> list[int]:
        def subjects(fault: Fault) -> list[str]:
            asked.append(1)
            return [*texts]

        taken = table.count_call(
            Service.JOBS, method, subjects, lambda fault: fault.kind is not Kind.HOLD
        )
        return [entry.id for entry in taken]

    assert call("GetCustomJob", "a red job") == [jobs, named]
    assert call("CreateCustomJob", "red") == [named]
    assert call("GetCustomJob", "blue") == [jobs]
    assert len(asked) == 3
    assert [(entry.id, entry.seen) for entry in table.entries() if entry.seen] == [
        (jobs, 2), (named, 2),
    ]  # fmt: skip
    assert count_call(table) == [held]


def test_what_an_earlier_server_held_is_forgotten(table: FaultTable) -> None:
    table.forget_held()
    assert not table.path.exists()
    added, stopping = table.add(HOLD), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(table.hold, added, "one", stopping)
        table.wait_held(added, 60)
        table.forget_held()
        assert table.get(added).held == ()
        stopping.set()
        assert waiting.result(60) is False
