"""Tests a submission that is refused although all checks passed, with the real engine."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.conftest import git
from tests.e2e import only_jobs
from tests.e2e.only_jobs import CONTROL, Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

OUTPUT = f"gs://{CONTROL}/train"
SPEC = {"baseOutputDirectory": {"outputUriPrefix": OUTPUT}}
BUSY = {"script": "exec sleep 600", "spec": SPEC}
UP = ("up", "-s", "local", "--yes", "--skip-preview", "--non-interactive")
REFUSE = ("jobs", "error", "--code", "PERMISSION_DENIED", "--method", "CreateCustomJob")


def commit(project: Project, run: int) -> None:
    project.want(train={**BUSY, "run": run})
    git(project.path, "add", "-A")
    git(project.path, "commit", "-qm", f"run {run}")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with only_jobs.project(tmp_path_factory.mktemp("refused"), only_jobs.REFUSED_SOON) as made:
        (made.path / ".gitignore").write_text(".vt-local\n__pycache__\n")
        git(made.path, "init", "-q", "-b", "main")
        git(made.path, "config", "user.name", "Kim")
        git(made.path, "config", "user.email", "kim@example.com")
        yield made


def refused(project: Project) -> str:
    """Return the output of `vt up` for a new job that is refused after the old job was
    cancelled.
    """
    project.vt("local", "fault", "add", *REFUSE, "--times", "0")
    told = project.vt(*UP, code=None)
    project.vt("local", "fault", "clear")
    assert project.live("train") == []
    assert "Traceback" not in told
    return told


def test_up_reports_the_cancelled_job_and_how_to_restore_it(project: Project) -> None:
    commit(project, 1)
    project.vt(*UP)
    [first] = project.accepted("train")
    commit(project, 2)
    told = refused(project)
    name = rf"projects/[^/]+/locations/us-central1/customJobs/{first.job_id}"
    said = rf"job 'train' \(run 1, {name}\) was cancelled after [\dhms ]+"
    assert re.search(rf"Before that, {said}, and no job runs now", told), told
    assert "revert its files and run `pulumi up`" in told
    git(project.path, "revert", "--no-edit", "HEAD")
    project.vt(*UP)
    assert project.live("train") == ["1"]


def test_plain_pulumi_error_contains_the_same_advice(project: Project) -> None:
    commit(project, 4)
    project.vt("local", "fault", "add", *REFUSE, "--times", "0")
    told = project.up(code=None)
    project.vt("local", "fault", "clear")
    assert "was cancelled after" in told
    assert f"Its output is in {OUTPUT}" in told
    assert "revert its files and run `pulumi up`" in told
    assert "vt: " not in told
