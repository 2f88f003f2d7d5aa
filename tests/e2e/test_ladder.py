"""Tests ladders with the real engine, provider and clients, and stock-outs of the local cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localgcp.faults.model import Fault
from localgcp.faults.table import clear, inject
from localgcp.vertex.records import JobState
from tests.e2e.only_jobs import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SPOT, LARGE = {"strategy": "SPOT"}, {"machineType": "n1-standard-8"}
QUEUE = {"script": "echo trained", "ladder": [SPOT, LARGE]}


@pytest.fixture(autouse=True)
def no_faults(project: Project) -> Iterator[None]:
    yield
    clear(project.home, None)


def add(project: Project, kind: str, **given: Any) -> int:
    return inject(project.home, Fault.parse(service="jobs", kind=kind, **given))


def ran(project: Project, job: str) -> list[tuple[str, str, JobState]]:
    """Return strategy, machine and state of the jobs of this name, in the order of submission."""
    return [
        (
            each.spec.get("scheduling", {}).get("strategy", ""),
            each.spec["workerPoolSpecs"][0]["machineSpec"]["machineType"],
            each.state,
        )
        for each in reversed(project.accepted(job))
    ]


FILE, SECOND, THIRD = ("", "n1-standard-4"), ("SPOT", "n1-standard-4"), ("", "n1-standard-8")


def test_up_moves_through_all_rungs_and_next_up_changes_nothing(project: Project) -> None:
    add(project, "stockout", match="n1-standard-4", times=0)
    project.want(fell={**QUEUE, "wait": "succeeded"})
    told = project.up()
    assert "continues on rung 2 of 3 (strategy SPOT)" in told
    assert "continues on rung 3 of 3 (n1-standard-8)" in told
    assert "job fell: SUCCEEDED" in told
    each = [(*FILE, JobState.FAILED), (*SECOND, JobState.FAILED), (*THIRD, JobState.SUCCEEDED)]
    assert ran(project, "fell") == each
    project.settled()
    assert "is on rung 3 of 3" in project.up()
    project.pulumi("refresh -s local --yes --skip-preview")
    project.settled()
    [resource] = [x for x in project.state()["resources"] if x["urn"].endswith("training-fell")]
    assert resource["id"] == project.accepted("fell")[0].name
    assert resource["outputs"]["state"] == "JOB_STATE_SUCCEEDED"
    # An edit of a rung that had no turn is an update; nothing is submitted.
    other = {**QUEUE, "ladder": [{"strategy": "FLEX_START"}, LARGE], "wait": "succeeded"}
    project.want(fell=other)
    project.up()
    assert ran(project, "fell") == each


def test_vt_jobs_wait_follows_a_ladder_to_its_end(project: Project) -> None:
    add(project, "stockout", match="ends", times=0)
    project.want(ends=QUEUE)
    project.up()
    told = project.vt("jobs", "wait", "ends", "--stack", "local", code=1)
    assert "No ladder rung is left: rung 1 (as in the job file): STOCKOUT" in told
    assert "rung 3 (n1-standard-8): STOCKOUT" in told
    assert [(a, b) for a, b, _ in ran(project, "ends")] == [FILE, SECOND, THIRD]
    assert "No ladder rung is left" in project.vt(
        "jobs", "wait", "ends", "--stack", "local", code=1
    )
    assert len(project.accepted("ends")) == 3


def test_quota_error_or_invalid_job_does_not_start_the_next_rung(project: Project) -> None:
    add(project, "stockout", match="quota", times=1)
    project.want(quota={**QUEUE, "script": "exit 3"})
    project.up()
    refused = add(project, "error", method="CreateCustomJob", code="RESOURCE_EXHAUSTED", times=2)
    for _ in range(2):
        told = project.vt("jobs", "wait", "quota", "--stack", "local", code=1)
        assert "its next ladder rung could not be submitted. Wait again to retry" in told
        assert [(a, b) for a, b, _ in ran(project, "quota")] == [FILE]
    clear(project.home, refused)
    told = project.vt("jobs", "wait", "quota", "--stack", "local", code=1)
    assert "continues on rung 2 of 3" in told
    assert "is FAILED" in told
    assert [(a, b) for a, b, _ in ran(project, "quota")] == [FILE, SECOND]


def test_job_on_its_second_rung_is_cancelled_with_its_stack(project: Project) -> None:
    add(project, "stockout", match="leaves", times=1)
    project.want(leaves={**QUEUE, "script": "sleep 600", "wait": "running", "deadline": "1m"})
    assert "job leaves: RUNNING" in project.up()
    # Now the rung that runs is edited: that is a replacement, and begins with the job file.
    project.want(leaves={**QUEUE, "script": "sleep 601", "run": 2})
    project.up()
    first, second, third = ran(project, "leaves")
    assert (first[2], second[2]) == (JobState.FAILED, JobState.CANCELLED)
    assert third[:2] == FILE
    project.want()
    project.up()
    assert [state.terminal for _, _, state in ran(project, "leaves")] == [True] * 3
