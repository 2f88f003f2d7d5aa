"""`vt drift` with a `pulumi` whose answer is given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from localgcp.apis.server import serve
from localgcp.inventory.store import project_number
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, cloud, home, make_cloud
from tests.unit.vt.jobs.submitting import submit, until_running
from vertex_training_cli.cli import app
from vertex_training_cli.drift import command

__all__ = ["cloud", "home", "make_cloud"]

Drift = Callable[..., Result]
CLEAN = json.dumps({"steps": [], "diagnostics": []})


@pytest.fixture
def drift(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drift]:
    """Runs the command; what `pulumi preview` answers, and its exit code, are given."""
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("VT_LOCAL_HOME", str(cloud.home.root))
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    stack = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
    (tmp_path / "Pulumi.local.yaml").write_text(stack)
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text('#!/bin/sh\necho "$*" >calls\ncat answer\nexit $(cat code)\n')
    pulumi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pulumi.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    def run(answer: str, code: int, *words: str) -> Result:
        (tmp_path / "answer").write_text(answer)
        (tmp_path / "code").write_text(str(code))
        return CliRunner().invoke(app, ["drift", "--stack", "local", *words])

    yield run
    server.stop(None).wait()


def test_a_stack_that_is_not_there_is_reported_as_a_failure(drift: Drift, tmp_path: Path) -> None:
    done = drift(CLEAN, 0, "--stack", "nope", "--output", str(tmp_path / "out"))
    assert done.exit_code == 1
    [error] = json.loads((tmp_path / "out.json").read_text())["errors"]
    assert error.startswith("no file Pulumi.nope.yaml in ")


def test_what_the_stack_file_allows_is_listed_and_one_with_mistakes_allows_nothing(
    drift: Drift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(found: Any, settings: Any, beside: Collection[str]) -> Any:
        judged.append((settings.project_number, list(beside)))
        return found

    judged: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(command, "with_project_policy", judge)
    file = tmp_path / "Pulumi.local.yaml"
    allowed = "{iap: {resource: firewalls/iap-*, reason: the platform team's way in}}"
    file.write_text(
        f"config:\n  gcp:project: {PROJECT}\n  gcp:region: us-central1\n"
        f'  vertex-training:projectNumber: "{project_number(PROJECT)}"\n'
        f"  vertex-training:drift: {{allowedResources: {allowed}}}\n"
    )
    line = "- allowed\\: firewalls/iap-\\* \\(the platform team's way in\\)"
    assert line in drift(CLEAN, 0).stdout.splitlines()
    file.write_text(f"{file.read_text()}  vertex-training:typo: 1\n")
    assert drift(CLEAN, 0).stdout == "Stack **local** has no drift.\n"
    assert judged == [(project_number(PROJECT), [])]


def test_a_job_that_the_state_does_not_know_is_a_difference(drift: Drift, cloud: Cloud) -> None:
    until_running(cloud, submit(cloud, "sleep 600", "train", run=2, stack="local"))
    done = drift(CLEAN, 0)
    assert done.exit_code == 7
    assert "### train \\(run 2\\) runs, but is not in the state" in done.stdout


def test_a_preview_that_failed_is_no_comparison_whatever_runs(drift: Drift, cloud: Cloud) -> None:
    until_running(cloud, submit(cloud, "sleep 600", "train", run=2, stack="local"))
    failed = [{"severity": "error", "message": "no right\n"}]
    done = drift(json.dumps({"steps": [], "diagnostics": failed}), 255)
    assert done.exit_code == 1
    assert "was not compared" in done.stdout
    assert "vt drift: no right\n" in done.stderr


def test_an_answer_that_is_no_preview_is_one_line(drift: Drift) -> None:
    done = drift("no json", 0)
    assert done.exit_code == 1
    assert done.stderr.startswith("vt drift: ")


def test_without_pulumi_there_is_a_hint(
    drift: Drift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "empty" / "python"))
    done = drift(CLEAN, 0)
    assert done.exit_code == 1
    assert "Hint: run `vt setup`" in done.stderr
