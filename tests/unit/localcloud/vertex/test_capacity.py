"""Jobs on reservations: taken, waited for, given back, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.home import Home
from localgcp.inventory.store import Binding, Store
from localgcp.vertex import capacity
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until
from tests.unit.localcloud.vertex.estate import AGENT, HOST, Estate
from tests.unit.localcloud.vertex.rows import job_row

CPU = f"projects/{PROJECT}/zones/us-central1-a/reservations/cpu"
RESERVATION = "gcp:compute/reservation:Reservation"
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


def test_a_job_holds_its_machine_while_it_runs(granted: Cloud, estate: Estate) -> None:
    estate.reservation(count=2)
    job = granted.submit(by_name("sleep", "600"))
    running(granted, job)
    assert granted.jobs.used(CPU) == 1

    granted.client.cancel_custom_job(name=job.name)
    wait_until(lambda: state(granted, job) is JobState.CANCELLED)

    assert granted.jobs.used(CPU) == 0
    assert f"workerpool0: 1 of reservation {CPU}" in granted.log(job)


def test_a_job_whose_reservation_is_used_up_waits_and_then_runs(
    make_cloud: Callable[..., Cloud],
) -> None:
    cloud = make_cloud(slots=2)
    cloud.grant(f"projects/{PROJECT}", "roles/compute.viewer", AGENT)
    Estate(cloud.home.root).reservation()
    first = cloud.submit(by_name("sleep", "600"))
    running(cloud, first)
    waiting = cloud.submit(by_name("true"))
    wait_until(lambda: state(cloud, waiting) is JobState.PENDING)

    # The one that waits takes no slot: another job runs meanwhile, and it does not.
    assert cloud.run(command_job("true")).state == SUCCEEDED
    assert state(cloud, waiting) is JobState.PENDING
    cloud.client.cancel_custom_job(name=first.name)
    wait_until(lambda: state(cloud, waiting) is JobState.SUCCEEDED)

    assert cloud.log(waiting).count("waiting for machines, the reservation is used up") == 1
    assert cloud.jobs.used(CPU) == 0


def test_a_job_that_waits_is_cancelled_at_once(granted: Cloud, estate: Estate) -> None:
    estate.reservation()
    running(granted, granted.submit(by_name("sleep", "600")))
    waiting = granted.submit(by_name("true"))
    wait_until(lambda: state(granted, waiting) is JobState.PENDING)

    granted.client.cancel_custom_job(name=waiting.name)

    wait_until(lambda: state(granted, waiting) is JobState.CANCELLED)
    assert granted.jobs.used(CPU) == 1


def test_a_reservation_that_grows_lets_the_next_job_run(granted: Cloud, estate: Estate) -> None:
    estate.reservation()
    running(granted, granted.submit(by_name("sleep", "600")))
    waiting = granted.submit(by_name("true"))
    wait_until(lambda: state(granted, waiting) is JobState.PENDING)
    held = granted.store.get(RESERVATION, CPU)
    assert held is not None

    grown = {**held.outputs["specificReservation"], "count": 2}
    outputs = {**held.outputs, "specificReservation": grown}
    granted.store.put(RESERVATION, CPU, PROJECT, held.inputs, outputs)

    wait_until(lambda: state(granted, waiting) is JobState.SUCCEEDED)


def test_the_machines_of_a_killed_server_are_given_back(
    home: Home, make_cloud: Callable[..., Cloud]
) -> None:
    jobs = JobTable(home.database)
    Estate(home.root).reservation()
    affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": [CPU]}
    machine = {"machineType": "n1-standard-4", "reservationAffinity": affinity}
    container = {"imageUri": "python:3.11", "command": ["true"]}
    pool = {"machineSpec": machine, "replicaCount": "1", "containerSpec": container}
    for job_id, left_in in (("1", JobState.RUNNING), ("2", JobState.PENDING)):
        jobs.insert(job_row(job_id, {"workerPoolSpecs": [pool]}, state=left_in))
    jobs.claim("1", {CPU: 1}, {CPU: 1})
    policy = Binding("roles/compute.viewer", (AGENT,))
    Store(home.database).set_policy(f"projects/{PROJECT}", (policy,), expected_etag="ACAB")

    after = make_cloud()

    wait_until(lambda: (job := jobs.get("2")) and job.state is JobState.SUCCEEDED)
    ended = after.jobs.get("1")
    assert ended is not None
    assert ended.state is JobState.FAILED
    assert jobs.used(CPU) == 0


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, 9,
         "is not shared with Vertex AI"),
        ({"specificReservation": {"count": 1, "instanceProperties": {
            "machineType": "n1-standard-8"}}}, 9,
         "is of n1-standard-8, the job asks for n1-standard-4."),
        ({"specificReservation": {"count": 1, "instanceProperties": {
            "machineType": "n1-standard-4", "guestAccelerators": [
                {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]}}}, 9,
         "is of n1-standard-4 with 1 x NVIDIA_TESLA_T4"),
        ({"specificReservation": {"count": 1, "instanceProperties": {
            "machineType": "n1-standard-4", "localSsds": [
                {"diskSizeGb": 375, "interface": "NVME"}]}}}, 9,
         "local SSDs attached by hand"),
        ({"name": "other"}, 5, "reservations/cpu does not exist"),
    ],
)  # fmt: skip
def test_a_reservation_that_does_not_fit_fails_the_job(
    granted: Cloud, estate: Estate, changes: dict[str, Any], code: int, message: str
) -> None:
    estate.reservation(**changes)

    got = failure(granted, by_name("true"))

    assert (got[0], message in got[1]) == (code, True), got


def test_the_agent_must_see_the_reservation(cloud: Cloud, estate: Estate) -> None:
    estate.reservation()

    code, message = failure(cloud, by_name("true"))

    assert (code, "Grant it roles/compute.viewer in project local-training" in message) == (7, True)


def test_a_reservation_of_another_project_must_be_shared_with_this_one(
    cloud: Cloud, estate: Estate
) -> None:
    path = estate.reservation(project=HOST)
    cloud.grant(f"projects/{HOST}", "roles/compute.viewer", AGENT)
    code, message = failure(cloud, by_name("true", values=(path,)))
    assert (code, "is not shared with project local-training" in message) == (9, True)

    share = {"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": PROJECT}]}
    shared = estate.reservation("shared", project=HOST, shareSettings=share)

    assert cloud.run(by_name("true", values=(shared,))).state == SUCCEEDED


def test_more_machines_than_there_are_in_all_are_refused(granted: Cloud, estate: Estate) -> None:
    estate.reservation(count=2)
    job = by_name("true")
    job["job_spec"]["worker_pool_specs"][0]["replica_count"] = 3

    code, message = failure(granted, job)

    assert (code, f"asks for 3 machines; {CPU} has 2 in all" in message) == (9, True)


def test_pools_that_together_ask_for_more_than_there_is_are_refused(
    granted: Cloud, estate: Estate
) -> None:
    estate.reservation(count=1)
    job = by_name("true")
    job["job_spec"]["worker_pool_specs"] *= 2

    code, message = failure(granted, job)

    assert (code, f"workerpool1 asks for 1 machines; {CPU} has 1 in all" in message) == (9, True)


def test_several_reservations_are_taken_in_the_order_they_are_named(
    granted: Cloud, estate: Estate
) -> None:
    second = estate.reservation("second", count=2)
    estate.reservation(count=1)
    affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": [CPU, second]}
    machine = {"machineType": "n1-standard-4", "reservationAffinity": affinity}
    pool = {"machineSpec": machine, "replicaCount": "2"}
    job = job_row("1", {"workerPoolSpecs": [pool]})

    made = capacity.plan(granted.store, granted.jobs, job)

    assert made.wanted == {CPU: 1, second: 1}


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


def test_a_job_without_an_affinity_takes_no_reservation(granted: Cloud, estate: Estate) -> None:
    estate.reservation("open", specificReservationRequired=False)
    job = granted.submit(command_job("sleep", "600"))
    running(granted, job)

    assert granted.jobs.used(CPU.replace("/cpu", "/open")) == 0
