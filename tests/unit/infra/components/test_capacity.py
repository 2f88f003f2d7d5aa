"""What is registered for a stack's reservations."""

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import H100

#: Five machines for a month cost more than dev may.
LIMITS = {"maxUsdPerEnvironment": 2_000_000}
TYPE = "gcp:compute/reservation:Reservation"


def reservation(**given):
    """Inputs of the one reservation that is registered."""
    found = registered("dev", limits=LIMITS, reservations={"h100": H100 | given})
    [inputs] = [inputs for type_, inputs in found.values() if type_ == TYPE]
    return inputs


def test_gpus_and_disks_of_n1_machines_are_named_as_compute_engine_does():
    made = reservation(
        machineType="n1-standard-8",
        acceleratorType="NVIDIA_TESLA_T4",
        acceleratorCount=2,
        localSsds={"count": 2},
    )
    machine = made["specificReservation"]["instanceProperties"]
    assert machine["guestAccelerators"] == [
        {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}
    ]
    assert machine["localSsds"] == [{"interface": "NVME", "diskSizeGb": 375}] * 2


def test_an_end_is_passed_on_in_universal_time():
    at = reservation(deleteAtTime="2999-01-01T00:30:00+01:00")
    assert at["deleteAtTime"] == "2998-12-31T23:30:00Z"
    after = reservation(deleteAfterDuration="604800s")
    assert after["deleteAfterDuration"] == {"seconds": "604800"}


def test_compute_engine_is_enabled_in_another_project_that_a_reservation_is_made_in():
    theirs = {"project": "acme-capacity", "shareWith": ["acme-ml-dev"]}
    found = registered(
        "dev", limits=LIMITS, reservations={"a": H100 | theirs, "b": H100 | theirs, "c": H100}
    )
    enabled = [
        (inputs["project"], inputs["service"])
        for type_, inputs in found.values()
        if type_ == "gcp:projects/service:Service" and inputs["project"] == "acme-capacity"
    ]
    assert enabled == [("acme-capacity", "compute.googleapis.com")]
