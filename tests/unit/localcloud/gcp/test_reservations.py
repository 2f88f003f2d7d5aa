"""Reservations in a local project: what is counted, and what is refused while jobs use them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localgcp.gcp.codec import decode, plain
from localgcp.inventory import reservations
from localgcp.inventory.store import Store, project_number
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


def test_what_jobs_use_is_seen_by_a_refresh_and_is_no_drift(ready: Plugin, jobs: JobTable) -> None:
    _, outputs = ready.create(RESERVATION, _reservation(3))
    jobs.insert(job_row("1", {}, state=JobState.PENDING))
    assert jobs.claim("1", {PATH: 2}, {PATH: 3})
    inputs = ready.checked(RESERVATION, "x", _reservation(3))

    read = ready.read(RESERVATION, PATH, properties=outputs, inputs=inputs)

    after = plain(decode(read.properties))
    assert after["specificReservation"]["inUseCount"] == 2
    assert decode(read.inputs) == inputs
    assert not ready.diff(RESERVATION, PATH, inputs, decode(read.properties)).detailedDiff


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


@pytest.mark.parametrize(
    "ended", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.QUEUED]
)
def test_a_job_that_ends_or_waits_anew_gives_its_machines_back(
    jobs: JobTable, ended: JobState
) -> None:
    jobs.insert(job_row("1", {}, state=JobState.PENDING))
    jobs.claim("1", {PATH: 2}, {PATH: 2})
    assert not jobs.claim("2", {PATH: 1}, {PATH: 2})

    jobs.move("1", JobState.RUNNING)
    assert jobs.used(PATH) == 2
    jobs.move("1", ended)

    assert jobs.used(PATH) == 0


def test_the_record_of_a_job_takes_its_claims_with_it(jobs: JobTable) -> None:
    jobs.insert(job_row("1", {}, state=JobState.RUNNING))
    jobs.claim("1", {PATH: 1}, {PATH: 1})

    jobs.delete("1")

    assert jobs.used(PATH) == 0


def test_machines_of_two_reservations_are_taken_together_or_not_at_all(jobs: JobTable) -> None:
    other = PATH.replace("cpu", "other")

    assert not jobs.claim("1", {PATH: 1, other: 2}, {PATH: 1, other: 1})

    assert jobs.used(PATH) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zone": "us-central1"}, "Unknown zone"),
        ({"shareSettings": {"shareType": "SPECIFIC_PROJECTS"}}, "needs at least one project"),
        (
            {
                "shareSettings": {
                    "shareType": "LOCAL",
                    "projectMaps": [{"id": "local-b", "projectId": "local-b"}],
                }
            },
            "is shared with no project",
        ),
        ({"deleteAtTime": "2020-01-01T00:00:00Z"}, "Must be in the future"),
    ],
)
def test_a_reservation_that_cannot_be_is_refused(
    ready: Plugin, changes: dict[str, Any], message: str
) -> None:
    assert message in refused(lambda: ready.create(RESERVATION, {**_reservation(1), **changes}))


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


def test_a_reservation_is_found_by_the_number_of_its_project(ready: Plugin, tmp_path: Path) -> None:
    ready.create(RESERVATION, _reservation(1))
    by_number = PATH.replace("local-p1", project_number("local-p1"))

    found = reservations.find(Store(tmp_path / "cloud.sqlite"), by_number)

    assert found is not None
    assert (found.path, found.region, found.count) == (PATH, "us-central1", 1)


@pytest.mark.parametrize(
    ("machine", "shape"),
    [
        ({"machineType": "n1-standard-4"}, "n1-standard-4"),
        ({"machineType": "a3-megagpu-8g"}, "a3-megagpu-8g with 8 x NVIDIA_H100_MEGA_80GB"),
        (
            {
                "machineType": "n1-standard-8",
                "guestAccelerators": [
                    {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}
                ],
            },
            "n1-standard-8 with 2 x NVIDIA_TESLA_T4",
        ),
    ],
)
def test_the_shape_of_a_machine_knows_its_gpus(machine: dict[str, Any], shape: str) -> None:
    assert str(reservations.shape_of(machine)) == shape


def test_a_project_that_shares_a_reservation_is_the_one_it_names_else_the_key(
    ready: Plugin,
) -> None:
    projects = [{"id": "a", "projectId": "local-other"}, {"id": "local-more"}]
    share = {"shareType": "SPECIFIC_PROJECTS", "projectMaps": projects}

    _, outputs = ready.create(RESERVATION, {**_reservation(1), "shareSettings": share})

    shared = plain(outputs["shareSettings"])["projectMaps"]
    assert {each["id"]: each["projectId"] for each in shared} == {
        "a": "local-other",
        "local-more": "local-more",
    }


def _reservation(count: int) -> dict[str, Any]:
    machine = {"instanceProperties": {"machineType": "n1-standard-4"}}
    made = {"name": "cpu", "zone": "us-central1-a", "specificReservation": machine}
    made["specificReservation"]["count"] = count
    return made
