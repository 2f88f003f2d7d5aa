"""A pool that takes any reservation takes it in the zone with the most free machines."""

from __future__ import annotations

from localgcp.vertex import capacity
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.localcloud.vertex.estate import Estate
from tests.unit.localcloud.vertex.rows import job_row


def pool(replicas: int) -> dict:
    affinity = {"reservationAffinityType": "ANY_RESERVATION"}
    machine = {"machineType": "n1-standard-4", "reservationAffinity": affinity}
    return {"machineSpec": machine, "replicaCount": replicas}


def path(zone: str, name: str) -> str:
    return f"projects/{PROJECT}/zones/{zone}/reservations/{name}"


def test_what_does_not_fit_is_taken_on_demand_in_that_zone(cloud: Cloud, estate: Estate) -> None:
    open_ = {"specificReservationRequired": False}
    estate.reservation("large", 3, zone="us-central1-b", **open_)
    job = job_row("1", {"workerPoolSpecs": [pool(5)]})

    made = capacity.plan(cloud.store, cloud.jobs, job)

    assert made.wanted == {path("us-central1-b", "large"): 3}
    assert made.notes[-1].endswith("2 on demand in us-central1-b, its reservations are used up")
