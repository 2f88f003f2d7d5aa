"""The command line of ``vt review``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit.vt.review import plans
from vertex_training_cli.cli import app
from vertex_training_cli.engine import events
from vertex_training_cli.review import digest
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


def test_markdown_goes_to_standard_output(project: Project) -> None:
    project.tells(plans.create(plans.BUCKET, "b", name="b"))
    done = run()
    assert done.exit_code == ReviewOutcome.CLEAN
    assert done.stdout.startswith("## Review of stack `dev`")
    assert "gs://acme-state" in done.stdout
    assert done.stdout.endswith("\n")
    assert not done.stdout.endswith("\n\n")


@pytest.mark.parametrize(("name", "start"), [("html", "<!DOCTYPE html>"), ("json", "{")])
def test_other_formats_go_where_they_are_told_to(project: Project, name: str, start: str) -> None:
    done = run("--format", name, "-o", "report")
    assert done.exit_code == 0
    assert (project.root / "report").read_text().lstrip().startswith(start)
    assert done.stdout == ""
    assert "Nothing changes" in done.stderr


def test_policy_packs_are_passed_on(project: Project) -> None:
    run("--policy-pack", "policy", "--policy-pack", "more")
    assert project.arguments[-4:] == [
        "--policy-pack", f"{project.root}/policy", "--policy-pack", f"{project.root}/more",
    ]  # fmt: skip


def test_a_mandatory_policy_is_exit_code_3(project: Project) -> None:
    project.tells(plans.violation("p", "mandatory", "no"), plans.summary("failed"), exit_code=1)
    done = run()
    assert done.exit_code == ReviewOutcome.FORBIDDEN == 3
    assert "`p`" in done.stdout


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


@pytest.mark.parametrize("output", [(), ("-o", "report")])
def test_the_engines_first_error_is_one_line_on_standard_error(
    project: Project, output: tuple[str, ...]
) -> None:
    project.tells(
        plans.said("warning", "an old plugin"),
        plans.said("error", "the plugin broke:\n  no disk\n"),
        plans.said("error", "preview failed"),
        plans.summary("failed"),
        exit_code=1,
    )
    *before, line = run(*output).stderr.splitlines()
    assert line == "vt review: dev: the preview failed: the plugin broke: no disk"
    assert len(before) == bool(output)  # the verdict, where the report is in a file


def test_a_long_error_is_cut_beside_the_report_alone(project: Project) -> None:
    project.tells(plans.said("error", "x " * 400), plans.summary("failed"), exit_code=1)
    done = run()
    assert done.stderr == f"vt review: dev: the preview failed: {('x ' * 400)[:499]}…\n"
    assert "x " * 399 + "x" in done.stdout


def test_a_preview_that_did_not_fail_has_no_such_line(project: Project) -> None:
    project.tells(plans.said("warning", "an old plugin"))
    assert run().stderr == ""
    project.tells(
        plans.violation("p", "mandatory", "no"),
        plans.said("error", "preview failed"),
        plans.summary("failed"),
        exit_code=1,
    )
    assert run().stderr == ""


def test_mistakes_in_the_stacks_files_are_told_with_their_places(project: Project) -> None:
    (project.root / "Pulumi.dev.yaml").write_text(STACK + "  vertex-training:buckts: {}\n")
    project.tells(plans.said("error", "1 mistake"), plans.summary("failed"), exit_code=1)
    done = run("--format", "json")
    assert done.exit_code == ReviewOutcome.FAILED
    [problem] = json.loads(done.stdout)["problems"]
    assert problem["where"] == "Pulumi.dev.yaml:5:3"


def test_an_engine_that_says_nothing_still_gives_a_report(project: Project) -> None:
    project.runs("echo 'no stack named dev found' >&2; exit 6")
    done = run()
    assert done.exit_code == ReviewOutcome.FAILED
    assert "no stack named dev found" in done.stdout


def test_an_engine_that_fails_without_a_word_among_its_events_is_quoted(project: Project) -> None:
    project.tells(exit_code=255, beside="out of memory")
    done = run()
    assert done.exit_code == ReviewOutcome.FAILED
    assert "out of memory" in done.stdout


def test_an_engine_that_does_not_stream_is_told(project: Project) -> None:
    project.runs("echo '{\"steps\": []}'")
    assert run().exit_code == ReviewOutcome.FAILED


def test_another_plan_than_the_expected_is_exit_code_5(project: Project) -> None:
    told = plans.create(plans.BUCKET, "b", name="b")
    project.tells(told)
    approved = digest.plan_digest(events.parse(plans.lines(told), "dev"))
    assert run("--expect", approved).exit_code == 0
    assert run("--expect", approved[:12]).exit_code == 0
    done = run("--expect", "0" * 64)
    assert done.exit_code == ReviewOutcome.DIFFERENT == 5
    assert "not the plan that was approved" in done.stdout


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
    assert "each ends in .md, .html, .json" in done.stderr


def test_a_refresh_is_asked_of_the_engine(project: Project) -> None:
    run()
    assert "--refresh" not in project.arguments
    run("--refresh")
    assert "--refresh" in project.arguments


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
    [("{", "it is no report of a preflight"), ('{"stack": "prod", "summary": "x"}', "about prod")],
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


def test_a_preflight_that_is_not_there_is_wrong_usage(project: Project) -> None:
    done = run("--preflight", "missing.json")
    assert done.exit_code == 2
    assert "missing.json" in done.output
    assert not (project.root / "arguments").exists()
