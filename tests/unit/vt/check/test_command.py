"""`vt check` as it is called: what is judged, against what, and the exit code."""

import json
import subprocess
import sys

import pytest


def test_a_missing_file_exits_2(project, vt):
    done = vt("check", "jobs/train.yaml", "nowhere.yaml")
    assert done.exit_code == 2
    assert done.stderr == "vt check: nowhere.yaml: no such file\n"


def test_without_files_the_folder_jobs_is_checked(project, vt):
    (project / "jobs" / "other.yml").write_text("x: 1\n")
    (project / "jobs" / "notes.txt").write_text("x: 1\n")
    done = vt("check", "--format", "json")
    files = [file["file"] for file in json.loads(done.stdout)["files"]]
    assert files == ["jobs/other.yml", "jobs/train.yaml"]


def test_standard_input_is_a_file_too(project, vt):
    done = vt("check", "-", input="useSpot: true\n")
    assert done.exit_code == 1
    assert done.stdout.startswith("<stdin>:1:1: ")


def test_every_format_tells_the_same_mistakes(project, vt):
    (project / "bad.yaml").write_text("useSpot: yes\nscheduling: {timeout: 24h}\n")
    count = json.loads(vt("check", "bad.yaml", "-f", "json").stdout)["errors"]
    scanned = json.loads(vt("check", "bad.yaml", "-f", "sarif").stdout)["runs"][0]["results"]
    commands = vt("check", "bad.yaml", "-f", "github").stdout.splitlines()
    assert count == len([r for r in scanned if r["level"] == "error"])
    assert count == len([c for c in commands if c.startswith("::error ")])
    assert count >= 2


def test_a_file_no_job_names_is_judged_against_the_stack_too(project, vt):
    job = (project / "jobs" / "train.yaml").read_text()
    (project / "new.yaml").write_text(job.replace("buckets.data", "buckets.dat"))
    done = vt("check", "new.yaml", "-s", "dev")
    assert done.exit_code == 1
    assert "did you mean 'buckets.data'?" in done.stdout


def test_jobs_of_a_stack_are_judged_against_each_other(project, vt):
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text().replace("/${job.requestId}", ""))
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + "    again: {file: jobs/train.yaml}\n")
    done = vt("check", "-s", "dev", "-f", "json")
    assert done.exit_code == 1
    [file] = json.loads(done.stdout)["files"]
    assert any("again" in finding["message"] for finding in file["findings"])


def test_mistakes_in_the_stack_file_are_told_at_their_place(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("labels:", "lables:"))
    (project / "bad.yaml").write_text("useSpot: yes\n")
    done = vt("check", "bad.yaml", "-s", "dev")
    assert done.exit_code == 1
    assert "Pulumi.dev.yaml:5:3: vertex-training:lables: unknown key" in done.stdout
    assert "bad.yaml:1:1: useSpot" in done.stdout


@pytest.mark.parametrize("name", ["prod", "../dev", ""])
def test_an_unknown_stack_exits_2(project, vt, name):
    done = vt("check", f"--stack={name}") if name else vt("check", "-s", "x")
    assert done.exit_code == 2
    assert "stacks here: dev" in done.stderr


def test_a_stack_needs_a_project(tmp_path, monkeypatch, vt):
    monkeypatch.chdir(tmp_path)
    done = vt("check", "-s", "dev")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no Pulumi.yaml here or above" in done.stderr


def test_rules_are_listed(vt):
    assert "rules\n" in vt("check", "--rules").stdout
    assert json.loads(vt("check", "--rules", "--format", "json").stdout)["rules"]
    assert vt("check", "--rules", "--format", "sarif").exit_code == 2


def test_checking_loads_neither_google_nor_pulumi_nor_pydantic(project):
    code = (
        "import sys\n"
        "from vertex_training_cli.check.command import check\n"
        "check(files=['jobs/train.yaml'])\n"
        "heavy = ('google.cloud.', 'google.protobuf', 'grpc', 'pulumi', 'pydantic', 'rich')\n"
        "print([name for name in sys.modules if name.startswith(heavy)], file=sys.stderr)\n"
    )
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
