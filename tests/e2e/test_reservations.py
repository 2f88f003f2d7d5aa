"""Tests two jobs for one reservation, on the local cloud with the real engine."""

import pytest

from localgcp.vertex.records import JobState
from tests.e2e.small_stacks import MACHINE, REGION, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stack(checkout):
    return SmallStack(checkout, "reserved")


def test_second_job_waits_for_the_reservation(stack):
    job = job_file()
    [pool] = job["jobSpec"]["workerPoolSpecs"]
    pool["machineSpec"] = {**MACHINE, "reservationAffinity": "${reservations.cpu}"}
    cpu = {"zone": f"{REGION}-a", "machineType": "n1-standard-4", "count": 1, "parallelJobs": 1}
    stack.write({"first": job, "second": job}, reservations={"cpu": cpu})
    stack.up()
    path = f"projects/{stack.project}/zones/{REGION}-a/reservations/cpu-{stack.name}"
    assert sorted(stack.states()) == [JobState.PENDING, JobState.RUNNING]
    assert stack.used(path) == 1
    status = stack.checkout.run("vt", "local", "status").stdout
    assert [line.split()[-1] for line in status.splitlines() if line.startswith(path)] == ["1/1"]
    # What is in use is an output of the reservation, and no drift.
    stack.is_settled()


def test_destroy_ends_both_jobs_and_frees_the_reservation(stack):
    stack.pulumi("destroy -y --skip-preview")
    assert stack.states() == [JobState.CANCELLED, JobState.CANCELLED]
    assert stack.left() == {}
