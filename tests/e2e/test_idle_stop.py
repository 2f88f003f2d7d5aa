"""Tests ``idleStop`` with the real engine, provider and clients; a fault sets the utilization."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localgcp.faults.model import Fault
from localgcp.faults.table import clear, inject
from localgcp.vertex.records import JobState
from tests.e2e.only_jobs import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
GPU = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
SLEEPS = {"script": "sleep 600", "machine": GPU}
WATCHED = {**SLEEPS, "idleStop": "5% for 10m"}
WHY = "no accelerator was at 5% or above for 10m (idleStop)"


@pytest.fixture(autouse=True)
def no_faults(project: Project) -> Iterator[None]:
    yield
    clear(project.home, None)
    project.want()
    project.up()


def do(project: Project, value: float, minutes: int = 60, match: str = "") -> int:
    given: Any = {"kind": "utilization", "value": value, "seconds": minutes * 60, "match": match}
    return inject(project.home, Fault.parse(service="monitoring", **given))


def advance(project: Project, *options: str, code: int = 0) -> str:
    return project.vt("jobs", "advance", "--stack", "local", *options, code=code)


def test_up_cancels_an_idle_job_and_nothing_submits_it_again(project: Project) -> None:
    do(project, 0.01)
    project.want(idle={**WATCHED, "wait": "succeeded"})
    told = project.up(code=None)
    assert f"job idle: {WHY}: cancelled (projects/" in told
    [name] = [each.name for each in project.accepted("idle")]
    assert f"job 'idle' is CANCELLED ({name}). N{WHY[1:]}. Fix the job, or set run: 2" in told
    assert project.states("idle") == [JobState.CANCELLED]
    assert WHY in project.vt("jobs", "show", "idle", "--stack", "local")
    # The next runs say what became of it, and submit nothing.
    assert f"job 'idle' is CANCELLED ({name}). N{WHY[1:]}" in project.up(code=None)
    assert WHY[3:] in project.vt("jobs", "wait", "idle", "--stack", "local", code=1)
    assert "idle" not in advance(project)
    project.settled()
    project.pulumi("refresh -s local --yes --skip-preview")
    project.settled()
    # Undo is an update of the resource: the request is what it was.
    project.want(idle=SLEEPS)
    assert "1 to update" in project.pulumi("preview -s local")
    project.up()
    project.settled()
    assert project.states("idle") == [JobState.CANCELLED]
    assert WHY in project.vt("jobs", "show", "idle", "--stack", "local")
    # A higher run is what submits it once more.
    project.want(idle={**SLEEPS, "run": 2})
    project.up()
    assert len(project.states("idle")) == 2


def run_both(project: Project, **jobs: Any) -> None:
    """Run two jobs, the maximum number at a time on this machine."""
    project.want(**jobs)
    project.up()
    for name in jobs:
        wanted = ("--for", "running", "--deadline", "1m")
        project.vt("jobs", "wait", name, "--stack", "local", *wanted)


def test_timer_cancels_only_idle_jobs(project: Project) -> None:
    do(project, 0.0, match="idles")
    do(project, 0.9, match="works")
    run_both(project, idles=WATCHED, works=WATCHED)
    shown = ("jobs", "show", "works", "--stack", "local")
    assert (
        "90.0% in use on average, 90.0% at most, in the last 30 minutes (1 series)"
        in project.vt(*shown)
    )
    use = json.loads(project.vt(*shown, "--format", "json"))["acceleratorUse"]
    assert use == {"minutes": 30, "series": 1, "mean": 0.9, "max": 0.9}
    assert f"idle idles: {WHY[:-11]}; the next run without --dry-run cancels the job" in advance(
        project, "--dry-run"
    )
    assert project.states("idles") == [JobState.RUNNING]
    told = advance(project)
    assert f"idle idles: {WHY}: cancelled (" in told
    assert told.count("\n") == 1
    project.vt("jobs", "wait", "idles", "--stack", "local", code=1)
    assert project.states("works") == [JobState.RUNNING]
    assert "idle " not in advance(project)


def test_job_without_points_or_without_idle_stop_is_not_cancelled(project: Project) -> None:
    do(project, 0.0, match="unasked")
    run_both(project, silent=WATCHED, unasked=SLEEPS)
    assert "idle " not in advance(project)
    no_points = "no data on the use of accelerators in the last 30 minutes"
    assert no_points in project.vt("jobs", "show", "silent", "--stack", "local")
    for name in ("silent", "unasked"):
        assert project.states(name) == [JobState.RUNNING]


def test_waiting_up_cancels_nothing_without_an_answer(project: Project) -> None:
    do(project, 0.0)
    project.want(lost=WATCHED)
    project.up()
    project.vt("jobs", "wait", "lost", "--stack", "local", "--for", "running", "--deadline", "1m")
    inject(project.home, Fault.parse(service="monitoring", kind="error", code="503", times=0))
    told = project.vt("jobs", "wait", "lost", "--stack", "local", "--deadline", "3s", code=None)
    assert "idleStop cannot check the job; the job continues: Cloud Monitoring returned 503" in told
    assert "Cloud Monitoring returned 503" in advance(project, code=1)
    not_known = "the use of accelerators is unknown: Cloud Monitoring returned 503"
    assert not_known in project.vt("jobs", "show", "lost", "--stack", "local")
    clear(project.home, None)
    do(project, 0.0, minutes=9)  # fewer than it takes
    told = project.vt("jobs", "wait", "lost", "--stack", "local", "--deadline", "3s", code=None)
    assert "cancelled" not in told
    assert project.states("lost") == [JobState.RUNNING]
    clear(project.home, None)
    do(project, 0.0)
    told = project.vt("jobs", "wait", "lost", "--stack", "local", code=1)
    assert f"job lost: {WHY}: cancelled (" in told
    assert project.states("lost") == [JobState.CANCELLED]
