"""Reservations that no job could use are told before they are paid for."""

import pytest

from tests.unit.infra.stacks import H100, refused, stack

THEIRS = "projects/acme-capacity/zones/us-central1-a/reservations/h100"


@pytest.mark.parametrize(
    ("given", "path", "text"),
    [
        ({"zone": "europe-west4-a"}, ".zone", "is not in us-central1, where the stack's jobs run"),
        ({"zone": "us-central1-z"}, ".zone", "is no zone of us-central1 (got us-central1-z)"),
        ({"deleteAtTime": "2026-11-20T00:00:00Z"}, ".deleteAtTime", "has passed: Google has"),
        ({"machineType": "a3-megagpu-9g"}, ".machineType", "no machine type of training jobs"),
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
        {"machineType": "n2-standard-8", "specificReservationRequired": False},
        {"zone": "us-central1-f"},
        {"deleteAtTime": "2999-01-01T00:00:00+01:00"},
    ],
)  # fmt: skip
def test_a_reservation_that_jobs_can_use_is_read(given):
    assert stack(reservations={"h100": H100 | given}).reservations["h100"].count == 5
