"""Reservations in a local project: what is counted, and what is refused while jobs use them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localgcp.gcp.codec import plain
from localgcp.inventory import reservations
from localgcp.inventory.store import Store
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.gcp.harness import Plugin, refused
from tests.unit.localcloud.vertex.rows import job_row

RESERVATION = "gcp:compute/reservation:Reservation"
PATH = "projects/local-p1/zones/us-central1-a/reservations/cpu"


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    local.enable("compute")
    return local


@pytest.fixture
def jobs(tmp_path: Path) -> JobTable:
    return JobTable(tmp_path / "cloud.sqlite")


def test_a_reservation_does_not_shrink_below_what_is_used(ready: Plugin, jobs: JobTable) -> None:
    _, olds = ready.create(RESERVATION, _reservation(3))
    jobs.insert(job_row("1", {}, state=JobState.RUNNING))
    jobs.claim("1", {PATH: 2}, {PATH: 3})

    text = refused(lambda: ready.update(RESERVATION, PATH, _reservation(1), olds))
    assert "has 2 instances in use" in text
    outputs = ready.update(RESERVATION, PATH, _reservation(2), olds)

    assert plain(outputs["specificReservation"])["count"] == 2


@pytest.mark.parametrize("by_name", [True, False])
def test_a_reservation_in_use_is_deleted_only_if_it_is_open_to_all(
    ready: Plugin, jobs: JobTable, by_name: bool
) -> None:
    _, olds = ready.create(RESERVATION, {**_reservation(1), "specificReservationRequired": by_name})
    jobs.insert(job_row("1", {}, state=JobState.RUNNING))
    jobs.claim("1", {PATH: 1}, {PATH: 1})

    if by_name:
        text = refused(lambda: ready.delete(RESERVATION, PATH, olds))
        assert "/customJobs/1'" in text
        jobs.move("1", JobState.SUCCEEDED)
    ready.delete(RESERVATION, PATH, olds)

    assert ready.read(RESERVATION, PATH).id == ""


def test_a_reservation_is_gone_after_its_time(ready: Plugin, tmp_path: Path) -> None:
    store = Store(tmp_path / "cloud.sqlite")
    ready.create(RESERVATION, {**_reservation(1), "deleteAfterDuration": {"seconds": "3600"}})
    held = store.get(RESERVATION, PATH)
    assert held is not None
    at = datetime.fromisoformat(held.outputs["deleteAtTime"])
    assert timedelta(minutes=50) < at - datetime.now(UTC) <= timedelta(hours=1)

    past = {**held.outputs, "deleteAtTime": "2020-01-01T00:00:00Z"}
    store.put(RESERVATION, PATH, held.project, held.inputs, past)

    assert ready.read(RESERVATION, PATH).id == ""
    assert reservations.find(store, PATH) is None
    ready.create(RESERVATION, _reservation(1))


def _reservation(count: int) -> dict[str, Any]:
    machine = {"instanceProperties": {"machineType": "n1-standard-4"}}
    made = {"name": "cpu", "zone": "us-central1-a", "specificReservation": machine}
    made["specificReservation"]["count"] = count
    return made
