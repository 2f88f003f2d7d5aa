"""`vt approval` and `vt deploy` in a real git checkout; no engine."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.deploy import command, sources
from vertex_training_cli.engine import stacks

DIGEST = "f" * 64


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(project, monkeypatch):
    monkeypatch.setenv("PULUMI_BACKEND_URL", "gs://nowhere")
    monkeypatch.setattr(command.PulumiCli, "export_deployment", lambda *_: {})
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


@pytest.fixture
def vt():
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def approved(vt, repo, digest=DIGEST):
    file = repo / "out" / "approval.json"
    assert vt("approval", "-s", "dev", digest, "-o", file).exit_code == 0
    return file


def test_without_a_file_the_record_is_printed(vt, repo):
    file = approved(vt, repo)
    done = vt("approval", "-s", "dev", DIGEST)
    assert (done.stdout, done.stderr) == (file.read_text(), "")
    assert done.stdout.count("\n") == 1
    assert json.loads(done.stdout)["target"]["backend"] == "gs://nowhere"


def test_a_report_without_a_digest_approves_nothing(vt, repo, tmp_path):
    report = tmp_path / "report.json"
    report.write_text("{}")
    done = vt("approval", "-s", "dev", report)
    assert done.exit_code == 1
    assert "no digest" in done.stderr


def test_without_a_named_state_nothing_can_be_approved(vt, repo, monkeypatch):
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    done = vt("approval", "-s", "dev", DIGEST)
    assert done.exit_code == 1
    assert "PULUMI_BACKEND_URL is not set" in done.stderr


def test_a_report_made_offline_approves_nothing(vt, repo, tmp_path, monkeypatch):
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    source = stacks.find_unchecked(repo, "dev").preview_target(offline=False).source
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"version": 1, "digest": "e" * 64, "source": source}))
    done = vt("approval", "-s", "dev", report)
    assert done.exit_code == 1
    assert "made offline" in done.stderr


EXTRA = "def declare(environment): ...\n"


def put(repo, name):
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text(EXTRA)


@pytest.mark.parametrize(
    "name",
    [
        "extra.py",
        "extra/__init__.py",
        "extra/ärger.py",
        "red.py",
        "teams/red.py",
        "jobs/a\nb.yaml",
        "Pulumi.other.yaml",
    ],
)
def test_code_and_yaml_that_no_commit_has_is_neither_approved_nor_deployed(
    vt, repo, monkeypatch, name
):
    file = approved(vt, repo)
    put(repo, name)
    monkeypatch.setattr(sources, "review", lambda *_: pytest.fail("it was planned"))
    done = vt("deploy", "-s", "dev", "--approval", file)
    shown = " ".join(name.split())
    assert done.exit_code == command.STOPPED
    assert f"the program could read files that are not in the commit (got {shown})" in done.stderr
    again = vt("approval", "-s", "dev", DIGEST)
    assert again.exit_code == 1
    assert f"(got {shown}). Hint: commit or remove these files." in again.stderr


def test_an_approval_of_another_content_stops_before_anything_is_planned(vt, repo, monkeypatch):
    file = approved(vt, repo)
    (repo / "jobs" / "train.yaml").write_text("{}")
    git(repo, "commit", "-qam", "second")
    monkeypatch.setattr(sources, "review", lambda *_: pytest.fail("it was planned"))
    done = vt("deploy", "-s", "dev", "--approval", file)
    assert done.exit_code == command.STOPPED
    assert "stack dev was not deployed. Nothing was changed." in done.stderr


def test_without_a_named_state_nothing_is_deployed(vt, repo, monkeypatch):
    file = approved(vt, repo)
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    done = vt("deploy", "-s", "dev", "--approval", file)
    assert done.exit_code == 1
    assert "PULUMI_BACKEND_URL is not set" in done.stderr


@pytest.mark.parametrize("record", ["{}", "no-such-file.json"])
def test_without_a_record_nothing_is_deployed(vt, repo, record):
    done = vt("deploy", "-s", "dev", "--approval", record)
    assert done.exit_code == 1
    assert done.stderr.startswith("vt deploy: ")
    if record == "{}":
        assert "--approval contains no approval record: stack: Field required" in done.stderr
        assert "Hint: write the record with `vt approval`." in done.stderr


def test_a_stack_is_not_deployed_twice_at_once_from_one_folder(vt, repo):
    record = approved(vt, repo)
    with sources.plan_held(repo, "dev"):
        done = vt("deploy", "-s", "dev", "--approval", record)
    assert done.exit_code == 1
    assert "another `vt deploy` of stack dev is running in this folder." in done.stderr


def test_the_record_may_be_given_as_text(vt, repo, monkeypatch):
    monkeypatch.setattr(sources, "review", lambda *_: "e" * 64)
    done = vt("deploy", "-s", "dev", "--approval", approved(vt, repo).read_text())
    assert done.exit_code == command.STOPPED
    first, second = done.stderr.splitlines()
    assert first == "vt deploy: stack dev was not deployed. Nothing was changed."
    assert "plan of dev: the plan differs from the approved plan with digest ffffffffffff" in second
    assert not done.stdout


def test_the_approved_plan_becomes_vt_up(vt, repo, monkeypatch):
    became = []
    monkeypatch.setattr(sources, "review", lambda *_: DIGEST)
    monkeypatch.setattr(command.os, "execve", lambda *words: became.append(words))
    monkeypatch.chdir(repo / "jobs")
    done = vt(
        *("deploy", "-s", "dev", "--approval", approved(vt, repo), "--refresh"),
        *("--policy-pack", "p", "--policy-levels", "levels.json"),
    )
    assert done.exit_code == 0
    assert done.stderr == "vt deploy: the plan of dev equals the approved plan\n"
    assert done.stdout == ""
    [(program, words, env)] = became
    assert [program, *words[1:]] == [
        sys.executable, "-m", "vertex_training_cli.cli", "up", "--stack", "dev", "--yes",
        "--skip-preview", "--non-interactive", "--policy-pack", "p",
        "--policy-levels", str(repo / "jobs" / "levels.json"), "--refresh",
        "--plan", str(sources.engine_plan(repo, "dev")),
    ]  # fmt: skip
    assert env["PULUMI_BACKEND_URL"] == "gs://nowhere"
