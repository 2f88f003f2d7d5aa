"""Jobs on a peered network: they run, or end FAILED and say what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import StartRefusedError
from localgcp.vertex import peering
from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import Cloud, command_job
from tests.unit.localcloud.vertex.estate import VPC, Estate
from tests.unit.localcloud.vertex.rows import job_row

SUCCEEDED = vertex.JobState.JOB_STATE_SUCCEEDED


def failure(cloud: Cloud, job: dict[str, Any]) -> tuple[int, str]:
    ended = cloud.run(job)
    assert ended.state == vertex.JobState.JOB_STATE_FAILED
    return ended.error.code, ended.error.message


def test_a_job_on_a_peered_network_runs(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.peering()

    job = command_job("true", network=VPC, reserved_ip_ranges=["training"])

    assert cloud.run(job).state == SUCCEEDED


def test_a_network_that_is_not_there_or_not_peered_fails_the_job(
    cloud: Cloud, estate: Estate
) -> None:
    job = command_job("true", network=VPC)

    assert failure(cloud, job) == (5, f"The network {VPC} does not exist.")
    estate.network()
    code, message = failure(cloud, job)

    assert code == 9
    assert message.startswith("NETWORK_NOT_PEERED: ")


def test_of_two_jobs_that_start_at_once_the_earlier_gets_the_addresses(
    cloud: Cloud, estate: Estate
) -> None:
    estate.network()
    estate.peering(prefix=21)
    first, second = (
        job_row(each, {"network": VPC, "workerPoolSpecs": [{}]}, state=JobState.PENDING)
        for each in ("1", "2")
    )
    cloud.jobs.insert(first)
    cloud.jobs.insert(second)

    peering.admit(cloud.store, first)
    with pytest.raises(StartRefusedError, match="RANGES_EXHAUSTED"):
        peering.admit(cloud.store, second)
    cloud.jobs.move("1", JobState.RUNNING)
    peering.admit(cloud.store, first)  # its own addresses are not counted against it
