"""Jobs of several replicas that really run: their hosts, their ends, their faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.runner.gang import End, LifeCycle
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until

JobState = vertex.JobState
ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
)


@pytest.fixture
def shared(cloud: Cloud) -> str:
    folder = cloud.home.root / "shared"
    folder.mkdir()
    return str(folder)


def pools(shared: str, *scripts: str | tuple[int, str], **scheduling: Any) -> dict[str, Any]:
    """A job whose pools run these scripts; a number in front is the replica count."""
    job = command_job("true", **({"scheduling": scheduling} if scheduling else {}))
    made: list[dict[str, Any]] = []
    for given in scripts:
        count, script = given if isinstance(given, tuple) else (1, given)
        container = {
            "image_uri": "python:3.11",
            "command": ["sh", "-c", script],
            "env": [{"name": "SHARED", "value": shared}],
        }
        machine = {"machine_type": "n1-standard-4"}
        made.append({"machine_spec": machine, "replica_count": count, "container_spec": container})
    job["job_spec"]["worker_pool_specs"] = made
    return job


def log(cloud: Cloud, job: vertex.CustomJob, replica: str = "workerpool0-0") -> str:
    folder = cloud.home.jobs / job.name.rpartition("/")[2] / "logs"
    return (folder / f"{replica}.log").read_text()


def add(cloud: Cloud, kind: str, **given: Any) -> None:
    FaultTable(cloud.home.faults).add(Fault.parse(service="jobs", kind=kind, **given))


def finish(cloud: Cloud, name: str) -> vertex.CustomJob:
    wait_until(lambda: cloud.client.get_custom_job(name=name).state in ENDED)
    return cloud.client.get_custom_job(name=name)


def file_in(shared: str, name: str) -> Callable[[], bool]:
    return (Path(shared) / name).exists


@pytest.mark.parametrize("replica", ["", "workerpool1-0"])
def test_a_preemption_of_one_replica_or_all_restarts_the_spot_job(
    cloud: Cloud, shared: str, replica: str
) -> None:
    worker = 'echo x >> "$SHARED/worker"; exec sleep 600'
    chief = (
        'echo x >> "$SHARED/chief"; '
        'while test $(cat "$SHARED/chief" "$SHARED/worker" | wc -l) -lt 4; do sleep 0.05; done'
    )
    name = cloud.submit(pools(shared, chief, worker, strategy="SPOT")).name
    wait_until(file_in(shared, "worker"))
    wait_until(file_in(shared, "chief"))
    add(cloud, "preempt", replica=replica)
    done = finish(cloud, name)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    who = "workerpool1-0 lost its machine" if replica else "all replicas lost their machines"
    assert f"preempted: {who} (1 of 6)" in log(cloud, done)


def test_the_timeout_counts_all_attempts_together(cloud: Cloud, shared: str) -> None:
    add(cloud, "kill", replica="workerpool1-0", seconds=0.3, times=0)
    spec = pools(shared, "sleep 600", "sleep 600", restart_job_on_worker_restart=True,
                 timeout={"seconds": 1})  # fmt: skip
    done = cloud.run(spec)
    assert done.state == JobState.JOB_STATE_CANCELLED
    assert "longer than scheduling.timeout (1s)" in done.error.message


def test_a_flex_start_job_waits_no_longer_than_max_wait_duration(cloud: Cloud, shared: str) -> None:
    add(cloud, "stockout", match="flex", times=2)
    flex = {"strategy": "FLEX_START", "max_wait_duration": {"seconds": 1}}
    job = {**command_job("true", scheduling=flex), "display_name": "flex"}
    done = cloud.run(job)
    assert done.state == JobState.JOB_STATE_FAILED
    assert (
        "No machine became available within scheduling.maxWaitDuration (1s)" in done.error.message
    )


def test_killed_replica_restarts_alone_with_an_empty_disk(cloud: Cloud, shared: str) -> None:
    worker = (
        'ls >>"$SHARED/seen"; touch left; echo x >>"$SHARED/worker"; '
        'test $(wc -l <"$SHARED/worker") = 2 || kill -9 $$; exec sleep 600'
    )
    chief = (
        'echo x >>"$SHARED/chief"; '
        'until test "$(cat "$SHARED/worker" | wc -l)" = 2; do sleep 0.05; done'
    )
    done = cloud.run(pools(shared, chief, worker))
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    assert "workerpool1-0 was killed (restart 1 of 5)" in log(cloud, done)
    assert Path(shared, "chief").read_text() == "x\n"
    assert Path(shared, "seen").read_text() == ""


def test_transient_exit_retries_the_whole_job(cloud: Cloud, shared: str) -> None:
    chief = 'echo x >>"$SHARED/chief"; test $(wc -l <"$SHARED/chief") = 2 || exit 6'
    done = cloud.run(pools(shared, chief, "sleep 600"))
    assert done.state == JobState.JOB_STATE_SUCCEEDED, done.error.message
    text = "workerpool0-0 exited with status 6: retrying the whole job (1 of 3)"
    assert text in log(cloud, done)


def decisions(life: LifeCycle, code: int, count: int) -> list[str]:
    """Return what follows each time when a worker ends with this code."""
    return [life.decide([End("worker", code)]).action.name for _ in range(count)]


def test_restarts_retries_and_preemptions_are_bounded() -> None:
    restarts = ["RESTART_REPLICAS"] * 5
    killed = [*[*restarts, "RETRY_JOB"] * 3, *restarts, "FAIL"]
    assert decisions(LifeCycle("chief"), 137, 24) == killed
    assert decisions(LifeCycle("chief"), 6, 4) == ["RETRY_JOB"] * 3 + ["FAIL"]
    assert decisions(LifeCycle("chief"), 1, 1) == ["FAIL"]
    assert decisions(LifeCycle("chief"), 0, 1) == ["CONTINUE"]
    every = {"restartJobOnWorkerRestart": True}
    assert decisions(LifeCycle.of("chief", every), 137, 1) == ["RESTART_ALL"]
    once = LifeCycle.of("chief", {**every, "disableRetries": True})
    assert decisions(once, 137, 1) == ["FAIL"]
    assert once.preempt(["worker"]).stockout
    life = LifeCycle("chief")
    lost = [life.preempt(["chief", "worker"]) for _ in range(7)]
    assert [each.stockout for each in lost] == [False] * 6 + [True]
