"""Tests ``wait`` with the real engine: output and remaining state of ``up`` after each
kind of end.
"""

from __future__ import annotations

import signal

import pytest

from localgcp.vertex.records import JobState
from tests.e2e.only_jobs import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
LONG = {"script": "sleep 600", "wait": "succeeded", "deadline": "10m"}


def test_up_waits_for_all_jobs_and_reports_their_progress(project: Project) -> None:
    # Each job goes on only when the other one runs too.
    goal = {"wait": "succeeded", "deadline": "5m"}
    one, two = project.path / "one-runs", project.path / "two-runs"
    script = "touch {}; until [ -e {} ]; do sleep 0.05; done"
    project.want(
        one={"script": script.format(one, two), **goal},
        two={"script": script.format(two, one), **goal},
    )
    told = project.up()
    assert "job one: SUCCEEDED" in told
    assert "job two: SUCCEEDED" in told
    project.settled()


def test_failed_job_fails_each_up_with_its_log(project: Project) -> None:
    project.want(
        bad={"script": "echo the reason; exit 3", "wait": "succeeded"}, other={"script": "true"}
    )
    for _ in range(2):
        told = project.up(code=None)
        assert "job 'bad' is FAILED" in told
        assert "set run: 2" in told
        assert "  the reason" in told
        assert "Traceback" not in told
        assert "unhandled error" not in told
        assert project.states("bad") == [JobState.FAILED]
    assert not project.state().get("pending_operations")
    assert len(project.accepted("other")) == 1


def test_deadline_fails_up_and_keeps_the_job_running(project: Project) -> None:
    project.want(long={**LONG, "deadline": "1s"})
    told = project.up(code=None)
    assert "did not succeed before the deadline of 1s" in told
    assert "creating failed" not in told
    assert [state.terminal for state in project.states("long")] == [False]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_wait_keeps_job_and_state(project: Project, number: signal.Signals) -> None:
    project.want(long=LONG)
    process = project.start_until(
        "job long: RUNNING", "pulumi up -s local --yes --skip-preview --non-interactive"
    )
    process.send_signal(number)
    process.communicate(timeout=120)  # far less than the deadline
    assert process.returncode != 0
    if number is signal.SIGKILL:
        project.pulumi("cancel -s local --yes")
    assert project.states("long") == [JobState.RUNNING]
    assert not project.state().get("pending_operations")


def test_next_up_waits_for_the_same_job(project: Project) -> None:
    project.want(long={**LONG, "wait": "running"})
    assert "job long: RUNNING" in project.up()
    assert project.states("long") == [JobState.RUNNING]
