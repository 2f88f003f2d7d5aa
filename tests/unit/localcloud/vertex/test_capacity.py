"""Jobs on reservations: taken, waited for, given back, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until
from tests.unit.localcloud.vertex.estate import AGENT, Estate

CPU = f"projects/{PROJECT}/zones/us-central1-a/reservations/cpu"
KEY = "compute.googleapis.com/reservation-name"
SUCCEEDED = vertex.JobState.JOB_STATE_SUCCEEDED


def by_name(*command: str, values: tuple[str, ...] = (CPU,), **machine: Any) -> dict[str, Any]:
    affinity = {"reservation_affinity_type": "SPECIFIC_RESERVATION", "key": KEY}
    return _job(command, {**affinity, "values": list(values)}, machine)


def by_any(*command: str, **machine: Any) -> dict[str, Any]:
    return _job(command, {"reservation_affinity_type": "ANY_RESERVATION"}, machine)


def _job(command: tuple[str, ...], affinity: Any, machine: dict[str, Any]) -> dict[str, Any]:
    job = command_job(*command)
    spec = job["job_spec"]["worker_pool_specs"][0]["machine_spec"]
    spec |= {"reservation_affinity": affinity, **machine}
    return job


def state(cloud: Cloud, job: vertex.CustomJob) -> JobState:
    found = cloud.jobs.get(job.name.rpartition("/")[2])
    assert found is not None
    return found.state


def running(cloud: Cloud, job: vertex.CustomJob) -> None:
    wait_until(lambda: state(cloud, job) is JobState.RUNNING)


def failure(cloud: Cloud, job: dict[str, Any]) -> tuple[int, str]:
    ended = cloud.run(job)
    assert ended.state == vertex.JobState.JOB_STATE_FAILED
    return ended.error.code, ended.error.message


@pytest.fixture
def granted(cloud: Cloud) -> Cloud:
    cloud.grant(f"projects/{PROJECT}", "roles/compute.viewer", AGENT)
    return cloud


def test_a_job_that_waits_is_cancelled_at_once(granted: Cloud, estate: Estate) -> None:
    estate.reservation()
    running(granted, granted.submit(by_name("sleep", "600")))
    waiting = granted.submit(by_name("true"))
    wait_until(lambda: state(granted, waiting) is JobState.PENDING)

    granted.client.cancel_custom_job(name=waiting.name)

    wait_until(lambda: state(granted, waiting) is JobState.CANCELLED)
    assert granted.jobs.used(CPU) == 1


def test_the_agent_must_see_the_reservation(cloud: Cloud, estate: Estate) -> None:
    estate.reservation()

    code, message = failure(cloud, by_name("true"))

    assert (code, "Grant it roles/compute.viewer in project local-training" in message) == (7, True)


def test_more_machines_than_there_are_in_all_are_refused(granted: Cloud, estate: Estate) -> None:
    estate.reservation(count=2)
    job = by_name("true")
    job["job_spec"]["worker_pool_specs"][0]["replica_count"] = 3

    code, message = failure(granted, job)

    assert (code, f"asks for 3 machines; {CPU} has 2 in all" in message) == (9, True)


def test_any_takes_what_matches_and_is_open_else_runs_on_demand(
    granted: Cloud, estate: Estate
) -> None:
    estate.reservation()  # by name only
    job = granted.run(by_any("true"))
    assert job.state == SUCCEEDED
    assert "no open reservation of n1-standard-4 in us-central1; on demand" in granted.log(job)
    estate.reservation("open", specificReservationRequired=False)
    first = granted.submit(by_any("sleep", "600"))
    running(granted, first)

    second = granted.run(by_any("true"))

    assert second.state == SUCCEEDED
    assert "1 of reservation" in granted.log(first)
    assert "1 on demand in us-central1-a, its reservations are used up" in granted.log(second)
