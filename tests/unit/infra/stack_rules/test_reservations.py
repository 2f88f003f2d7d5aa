"""Reservations that no job could use are told before they are paid for."""

import pytest

from tests.unit.infra.stacks import H100, refused, stack

THEIRS = "projects/acme-capacity/zones/us-central1-a/reservations/h100"


@pytest.mark.parametrize(
    ("given", "path", "text"),
    [
        ({"zone": "europe-west4-a"}, ".zone", "is not in us-central1, where the stack's jobs run"),
        ({"zone": "us-central1-z"}, ".zone", "is no zone of us-central1 (got us-central1-z)"),
        ({"zone": "us-central1-d"}, ".zone", "one of us-central1-a, us-central1-b, us-central1-c"),
        ({"deleteAtTime": "2026-11-20T00:00:00Z"}, ".deleteAtTime", "has passed: Google has"),
        ({"machineType": "a3-megagpu-9g"}, ".machineType", "no machine type of training jobs"),
        ({"machineType": "c3-standard-4"}, ".machineType", "no machine type of training jobs"),
        ({"acceleratorType": "NVIDIA_L4"}, ".acceleratorType", "does not carry it (got NVIDIA_L4)"),
        (
            {"acceleratorType": "NVIDIA_H100_MEGA_80GB", "acceleratorCount": 4},
            ".acceleratorCount",
            "it carries: NVIDIA_H100_MEGA_80GB x 8",
        ),
        ({"acceleratorCount": 8}, ".acceleratorCount", "says nothing without acceleratorType"),
        ({"project": "acme-capacity"}, ".shareWith", "add acme-ml-prod"),
        ({"shareWith": ["acme-ml-prod"]}, ".shareWith", "names the project that owns it"),
        ({"existing": THEIRS, "zone": "us-central1-b"}, ".zone", "existing is in zone us-central1"),
        ({"existing": THEIRS, "protect": True}, ".protect", "its owner's to say"),
        ({"existing": THEIRS, "shareWith": ["acme-x"]}, ".shareWith", "its owner's to say"),
        ({"deleteAfterDuration": "3h"}, ".deleteAfterDuration", "must look like 604800s (got"),
        ({"deleteAtTime": "tomorrow"}, ".deleteAtTime", "valid datetime"),
        ({"count": 0}, ".count", "greater than or equal to 1"),
        ({"existing": "h100"}, ".existing", "projects/PROJECT/zones/ZONE/reservations/NAME"),
        (
            {"deleteAfterDuration": "3600s", "deleteAtTime": "2999-01-01T00:00:00Z"},
            "",
            "give either deleteAtTime or deleteAfterDuration",
        ),
    ],
)
def test_a_reservation_that_cannot_be_is_told_at_its_place(given, path, text):
    [(where, told)] = refused(reservations={"h100": H100 | given})
    assert where == f"reservations.h100{path}"
    assert text in told


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"existing": THEIRS},
        {"project": "acme-capacity", "shareWith": ["acme-ml-prod", "acme-ml-dev"]},
        {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4",
         "acceleratorCount": 2, "localSsds": {"count": 1}},
        {"machineType": "n2-standard-8", "specificReservationRequired": False},
        {"zone": "us-central1-f"},
        {"deleteAtTime": "2999-01-01T00:00:00+01:00"},
    ],
)  # fmt: skip
def test_a_reservation_that_jobs_can_use_is_read(given):
    assert stack(reservations={"h100": H100 | given}).reservations["h100"].count == 5


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_reservation_serves_at_least_one_job_at_once(jobs):
    [(where, told)] = refused(reservations={"h100": H100 | {"parallelJobs": jobs}})
    assert where == "reservations.h100.parallelJobs"
    assert "greater than or equal to 1" in told


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "greater than or equal to 1"), (25, "less than or equal to 24")],
)
def test_a_machine_has_from_one_to_24_local_ssds(count, text):
    machine = {"machineType": "n1-standard-8", "localSsds": {"count": count}}
    [(where, told)] = refused(reservations={"h100": H100 | machine})
    assert where == "reservations.h100.localSsds.count"
    assert text in told
    for most in (1, 24):
        given = H100 | machine | {"localSsds": {"count": most}}
        assert stack(reservations={"h100": given}).reservations["h100"].local_ssds.count == most
