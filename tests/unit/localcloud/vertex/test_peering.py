"""Jobs on a peered network: they run, or end FAILED and say what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import StartRefusedError
from localgcp.vertex import peering
from localgcp.vertex.records import JobState
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
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


@pytest.mark.parametrize(
    ("prefix", "nodes", "jobs"),
    [  # doc:training/using-private-ip
        (16, 8, 63), (17, 8, 31), (18, 8, 15), (16, 16, 31), (17, 16, 15), (18, 16, 7),
        (16, 32, 15), (17, 32, 7), (18, 32, 3), (21, 1, 1), (22, 1, 0), (24, 1, 0),
    ],
)  # fmt: skip
def test_a_range_has_room_for_as_many_jobs_as_google_says(
    cloud: Cloud, estate: Estate, prefix: int, nodes: int, jobs: int
) -> None:
    estate.network()
    estate.peering(prefix)
    pools = [{"replicaCount": "1"}, {"replicaCount": str(nodes - 1)} if nodes > 1 else {}]
    spec = {"network": VPC, "workerPoolSpecs": pools}
    for number in range(jobs):
        row = job_row(f"{number:03}", spec, state=JobState.RUNNING)
        if number == jobs - 1:
            peering.admit(cloud.store, row)
        cloud.jobs.insert(row)

    with pytest.raises(StartRefusedError, match="RANGES_EXHAUSTED") as caught:
        peering.admit(cloud.store, job_row("999", spec))
    assert caught.value.code == 8
    if jobs:
        cloud.jobs.move("000", JobState.SUCCEEDED)
        peering.admit(cloud.store, job_row("999", spec))


def test_the_blocks_of_all_ranges_count_that_hold_a_job_at_all(
    cloud: Cloud, estate: Estate
) -> None:
    """Two of a job's own size hold one; what is smaller than a block holds none."""
    estate.network()
    sizes = {"small": 23, "first": 22, "second": 22}
    common = {"network": "vpc", "purpose": "VPC_PEERING", "addressType": "INTERNAL"}
    for name, size in sizes.items():
        token = "gcp:compute/globalAddress:GlobalAddress"
        estate.make(token, project=PROJECT, name=name, prefixLength=size, **common)
    estate.make(
        "gcp:servicenetworking/connection:Connection",
        network=f"projects/{PROJECT}/global/networks/vpc",
        service="servicenetworking.googleapis.com",
        reservedPeeringRanges=list(sizes),
    )
    named = {"network": VPC, "workerPoolSpecs": [{}]}
    for ranges, is_admitted in (
        (["first"], False), (["small", "first"], False), (["first", "second"], True),
    ):  # fmt: skip
        row = job_row("1", {**named, "reservedIpRanges": ranges})
        if is_admitted:
            peering.admit(cloud.store, row)
            continue
        with pytest.raises(StartRefusedError, match="RANGES_EXHAUSTED"):
            peering.admit(cloud.store, row)


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
