"""The command line of ``vt review``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit.vt.review import plans
from vertex_training_cli.cli import app
from vertex_training_cli.review.command import review
from vertex_training_cli.review.report import ReviewOutcome

STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
"""


class Project:
    """A project with a pulumi that tells given events."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
        (root / "Pulumi.dev.yaml").write_text(STACK)
        (root / ".venv" / "bin").mkdir(parents=True)
        self.tells()

    def tells(self, *told: plans.Event, exit_code: int = 0, beside: str = "") -> None:
        (self.root / "told.jsonl").write_text("\n".join(plans.lines(*told)) + "\n")
        self.runs(f"cat '{self.root}/told.jsonl'; echo '{beside}' >&2; exit {exit_code}")

    def runs(self, script: str) -> None:
        file = self.root / "bin" / "pulumi"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{self.root}/arguments"\n{script}\n')
        file.chmod(0o755)

    @property
    def arguments(self) -> list[str]:
        return (self.root / "arguments").read_text().splitlines()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    # A state of its own: nothing of the local cloud stands before this pulumi.
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://acme-state")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["review", "--stack", "dev", *arguments])


def test_a_failed_preview_still_gives_a_report(project: Project) -> None:
    project.tells(
        plans.create(plans.JOB, "training-a", **plans.job("a")),
        plans.said("error", "the plugin broke"),
        plans.summary("failed"),
        exit_code=1,
    )
    done = run()
    assert done.exit_code == ReviewOutcome.FAILED == 1
    assert "the plugin broke" in done.stdout
    assert "`a`" in done.stdout


def test_mistakes_in_the_stacks_files_are_told_with_their_places(project: Project) -> None:
    (project.root / "Pulumi.dev.yaml").write_text(STACK + "  vertex-training:buckts: {}\n")
    project.tells(plans.said("error", "1 mistake"), plans.summary("failed"), exit_code=1)
    done = run("--format", "json")
    assert done.exit_code == ReviewOutcome.FAILED
    [problem] = json.loads(done.stdout)["problems"]
    assert problem["where"] == "Pulumi.dev.yaml:5:3"


def test_an_engine_that_does_not_stream_is_told(project: Project) -> None:
    project.runs("echo '{\"steps\": []}'")
    assert run().exit_code == ReviewOutcome.FAILED


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--stack", "prd"), "Pulumi.prd.yaml"),
        (("--stack", "../x"), "Pulumi.../x.yaml"),
        (("--expect", "abc"), "hex"),
        (("-o", "no/such/folder/x"), "No such file"),
    ],
)
def test_what_cannot_be_run_is_exit_code_2_with_one_line(
    project: Project, arguments: tuple[str, ...], why: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_exit_codes_in_the_help_are_those_there_are() -> None:
    told = " ".join((review.__doc__ or "").split())
    for outcome in ReviewOutcome:
        assert f" {int(outcome)} " in told


def test_of_several_files_each_ending_says_the_format(project: Project) -> None:
    project.tells(plans.create(plans.BUCKET, "b", name="b"))
    assert run("-o", "p.md", "-o", "p.json", "-o", "p.html").exit_code == 0
    found = json.loads((project.root / "p.json").read_text())["digest"]
    assert found[:12] in (project.root / "p.md").read_text()
    assert (project.root / "p.html").read_text().startswith("<!DOCTYPE html>")


def test_of_several_files_one_without_a_known_ending_is_refused(project: Project) -> None:
    done = run("-o", "p.md", "-o", "p.txt")
    assert done.exit_code == 2
    assert "the name must end in .md, .html, .json" in done.stderr


def test_a_preflight_is_one_line_of_the_report(project: Project, tmp_path: Path) -> None:
    del project
    file = tmp_path / "dev.preflight.json"
    summary = "41 asked, 0 refused, 3 unknown"
    file.write_text(json.dumps({"stack": "dev", "summary": summary}))
    told = run("--preflight", str(file)).output
    assert f"Preflight: `{summary}`" in told
    document = json.loads(run("--preflight", str(file), "-f", "json").stdout)
    assert document["preflight"] == summary
    assert "Preflight" not in run().output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not a report of `vt preflight`"),
        ('{"stack": "prod", "summary": "x"}', "on stack prod"),
    ],
)
def test_a_preflight_of_something_else_is_refused(
    project: Project, tmp_path: Path, text: str, why: str
) -> None:
    del project
    file = tmp_path / "x.json"
    file.write_text(text)
    found = run("--preflight", str(file))
    assert found.exit_code == 2
    assert why in found.output
