"""Stock-outs and preemptions of jobs that really run."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.runner.gang.life_cycle import PREEMPTIONS
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until

JobState = vertex.JobState
SPOT = {"strategy": "SPOT"}
STOCKOUT = "STOCKOUT: Resources are insufficient in region: us-central1."
#: Runs until it is ended the first time, and leaves a mark where only its machine can see it.
FIRST_TIME_SLEEPS = (
    'if test -e "$MARK"; then test ! -e here && echo resumed; '
    'else echo begun > "$MARK"; touch here; exec sleep 600; fi'
)


def add(cloud: Cloud, kind: str, **given: Any) -> FaultTable:
    table = FaultTable(cloud.home.faults)
    table.add(Fault.parse(service="jobs", kind=kind, **given))
    return table


def test_a_stock_out_fails_the_job_it_fits_and_no_other(cloud: Cloud) -> None:
    add(cloud, "stockout", match="rare")
    job = cloud.run({**command_job("true"), "display_name": "a rare machine"})
    assert (job.state, job.error.code, job.error.message) == (
        JobState.JOB_STATE_FAILED,
        8,
        STOCKOUT,
    )
    assert cloud.run(command_job("true")).state == JobState.JOB_STATE_SUCCEEDED


def test_a_stock_out_that_ends_lets_the_job_run_after_waiting(cloud: Cloud) -> None:
    add(cloud, "stockout", seconds=0.3)
    job = cloud.run(command_job("true"))
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    assert f"{STOCKOUT} Waiting." in cloud.log(job)


def test_a_job_that_waits_for_machines_can_be_cancelled(cloud: Cloud) -> None:
    add(cloud, "stockout", seconds=600)
    name = cloud.submit(command_job("true")).name

    def state() -> JobState:
        return cloud.client.get_custom_job(name=name).state

    wait_until(lambda: state() == JobState.JOB_STATE_PENDING)
    cloud.client.cancel_custom_job(name=name)
    wait_until(lambda: state() == JobState.JOB_STATE_CANCELLED)


def spot_job(cloud: Cloud, command: str, **scheduling: Any) -> dict[str, Any]:
    job = command_job("sh", "-c", command, scheduling={**SPOT, **scheduling})
    mark = str(cloud.home.root / "mark")
    container = job["job_spec"]["worker_pool_specs"][0]["container_spec"]
    container["env"] = [{"name": "MARK", "value": mark}]
    return job


def test_a_preempted_job_begins_again_on_an_empty_machine(cloud: Cloud) -> None:
    name = cloud.submit(spot_job(cloud, FIRST_TIME_SLEEPS)).name
    wait_until((cloud.home.root / "mark").exists)
    add(cloud, "preempt")
    done = (JobState.JOB_STATE_SUCCEEDED, JobState.JOB_STATE_FAILED)
    wait_until(lambda: cloud.client.get_custom_job(name=name).state in done)
    job = cloud.client.get_custom_job(name=name)
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    assert "preempted: workerpool0-0 lost its machine (1 of 6)" in cloud.log(job)
    assert "resumed\n" in cloud.log(job)


@pytest.mark.parametrize(
    ("scheduling", "preemptions"), [({}, PREEMPTIONS + 1), ({"disable_retries": True}, 1)]
)
def test_restarts_end_with_a_stock_out(
    cloud: Cloud, scheduling: dict[str, Any], preemptions: int
) -> None:
    table = add(cloud, "preempt", times=0)
    job = cloud.run(spot_job(cloud, "exec sleep 600", **scheduling))
    assert (job.state, job.error.message) == (JobState.JOB_STATE_FAILED, STOCKOUT)
    assert table.entries()[0].fired == preemptions


def test_a_job_that_is_not_spot_keeps_its_machine(cloud: Cloud) -> None:
    table = add(cloud, "preempt", times=0)
    assert cloud.run(command_job("sleep", "0.3")).state == JobState.JOB_STATE_SUCCEEDED
    assert table.entries()[0].fired == 0


def test_a_preemption_waits_until_the_job_has_run_for_a_while(cloud: Cloud) -> None:
    table = add(cloud, "preempt", seconds=3600)
    assert cloud.run(spot_job(cloud, "sleep 0.3")).state == JobState.JOB_STATE_SUCCEEDED
    assert table.entries()[0].fired == 0
