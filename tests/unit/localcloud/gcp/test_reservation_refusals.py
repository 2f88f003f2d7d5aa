"""The words in which a reservation that cannot be is refused."""

import pytest

from tests.unit.localcloud.gcp.harness import refused

RESERVATION = "gcp:compute/reservation:Reservation"
GIVEN = {
    "name": "cpu",
    "zone": "us-central1-a",
    "specificReservation": {
        "count": 1,
        "instanceProperties": {"machineType": "n1-standard-4"},
    },
}


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("tomorrow", "Must be a time of RFC 3339."),
        ("2099-01-01T00:00:00", "Must be a time of RFC 3339."),
        ("2020-01-01T00:00:00Z", "Must be in the future."),
    ],
)
def test_the_end_of_a_reservation_is_a_time_to_come(local, at, says):
    local.enable("compute")
    text = refused(lambda: local.create(RESERVATION, {**GIVEN, "deleteAtTime": at}))
    assert f"Invalid value for field 'resource.deleteAtTime': '{at}'. {says}" in text
