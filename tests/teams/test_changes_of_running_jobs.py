"""Tests effects of stack changes on a running job, with the real engine, CLI and running code."""

from __future__ import annotations

import pytest

from tests.e2e.only_jobs import Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BUSY = {"script": "exec sleep 600"}
PREVIEW = "preview -s local"


def test_revert_of_a_deployed_edit_runs_the_previous_job_again(project: Project) -> None:
    for run in (1, 2):
        project.want(reverted={**BUSY, "run": run})
        project.up()
    project.want(reverted={**BUSY, "run": 1})
    told = project.vt("review", "--stack", "local")
    assert "output written into the folder of an earlier job: `reverted` (`" in told
    project.up()
    assert project.live("reverted") == ["1"]
    project.up()
    turns = [job.labels["vt-request-turn"] for job in project.accepted("reverted")]
    assert sorted(turns) == ["1", "2", "3"]


def test_preview_refuses_a_job_restored_after_its_removal(project: Project) -> None:
    project.want(removed=BUSY)
    project.up()
    project.want()
    project.up()
    project.want(removed=BUSY)
    told = project.pulumi(PREVIEW, code=None)
    assert "run 1 of job 'removed' is CANCELLED" in told
    assert "set run: 2 of 'removed' in the stack file" in told
    assert "Traceback" not in told
    project.want(removed={**BUSY, "run": 2})
    project.up()
    assert project.live("removed") == ["2"]


def test_restored_state_cancels_no_job_for_a_refused_request(project: Project) -> None:
    project.want(restored=BUSY)
    project.up()
    project.pulumi("stack export -s local --file before.json")
    project.want(restored={**BUSY, "run": 2})
    project.up()
    project.pulumi("stack import -s local --file before.json")
    project.want(restored={**BUSY, "run": 3})
    for command in (PREVIEW, "up -s local --yes --skip-preview"):
        told = project.pulumi(command, code=None)
        assert "earlier submission that is missing in this state" in told
        assert "Nothing was submitted" in told
        assert "Nothing was cancelled" in told
        assert "Traceback" not in told
    told = project.vt("review", "--stack", "local", code=1)
    assert "the preview failed: job 'restored' has an earlier submission" in told
    assert project.live("restored") == ["2"]
    project.want(restored={**BUSY, "run": 2})
    project.up()
    assert project.live("restored") == ["2"]
    assert len(project.accepted("restored")) == 2


def test_restored_state_adopts_the_running_job(project: Project) -> None:
    project.want(again=BUSY)
    project.up()
    project.pulumi("stack export -s local --file before.json")
    for run in (2, 1):
        project.want(again={**BUSY, "run": run})
        project.up()
    [running] = [job.name for job in project.accepted("again") if not job.state.terminal]
    project.pulumi("stack import -s local --file before.json")
    told = project.vt("up", "--stack", "local", "--yes", "--skip-preview")
    assert f"{running}. " in told
    assert "`vt up --stack local --refresh`, which adopts the job" in told
    # A change that does not look first would hide what it cancels.
    project.want(again={**BUSY, "run": 3})
    for command in (PREVIEW, "up -s local --yes --skip-preview"):
        told = project.pulumi(command, code=None)
        assert f"{running} is RUNNING, and the state has an older job of that request" in told
        assert "Nothing was cancelled" in told
        assert "Traceback" not in told
    told = project.vt("review", "--stack", "local", "--refresh")
    assert "previous job cancelled (running for " in told
    project.want(again=BUSY)
    project.vt("up", "--stack", "local", "--yes", "--refresh", "--skip-preview")
    assert running in [each.get("id") for each in project.state()["resources"]]
    assert "has no drift" in project.vt("drift", "--stack", "local")
    assert project.live("again") == ["1"]
    project.want(again={**BUSY, "run": 3})
    project.up()
    assert project.live("again") == ["3"]
    assert len(project.accepted("again")) == 4


def told_to_end(project: Project, job: str) -> None:
    """Signal the running job to end."""
    (project.path / f"end-{job}").touch()


def finishing(project: Project, job: str, run: int) -> dict[str, object]:
    """Return a job that runs until ``told_to_end``, and may finish."""
    file = project.path / f"end-{job}"
    script = f"while [ ! -e {file} ]; do sleep 0.2; done"
    return {"script": script, "run": run, "onChange": "finish"}


def test_change_waits_for_a_running_job_and_is_submitted_once(project: Project) -> None:
    project.want(patient=finishing(project, "patient", 1), renamed=finishing(project, "renamed", 1))
    project.up()
    both = {job: finishing(project, job, 2) for job in ("patient", "renamed")}
    project.want(**both)
    project.up()
    project.up()
    assert project.live("patient") == project.live("renamed") == ["1"]
    # What waits under another name waits no longer: the old job leaves the stack.
    project.want(patient=both["patient"], other=finishing(project, "renamed", 1))
    project.up()
    assert (project.live("renamed"), project.live("other")) == ([], ["1"])
    # Taken back while it waits: as if it had not been.
    project.want(patient=finishing(project, "patient", 1))
    project.up()
    assert "deferredRequestId" not in str(project.state())
    project.want(patient=both["patient"])
    project.up()
    told_to_end(project, "patient")
    project.vt("jobs", "wait", "patient", "-s", "local")
    project.up()
    project.up()
    runs = [job.labels["vt-run"] for job in project.accepted("patient")]
    assert sorted(runs) == ["1", "2"]


def test_destroy_during_a_waiting_change_leaves_no_job(project: Project) -> None:
    project.want(waiting=finishing(project, "waiting", 1))
    project.up()
    project.want(waiting=finishing(project, "waiting", 2))
    project.up()
    project.pulumi("destroy -s local --yes --skip-preview")
    assert [job.labels["vt-run"] for job in project.accepted("waiting")] == ["1"]
    assert project.live("waiting") == []
