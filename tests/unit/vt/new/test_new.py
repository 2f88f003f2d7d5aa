"""`vt new job` begins a job that is in order, uses what the stack has, and overwrites nothing."""

import pytest
import yaml
from typer.testing import CliRunner

from vertex_training_cli.cli import app

EMPTY = """\
config:
  gcp:project: local-demo
  gcp:region: us-central1
  vertex-training:projectNumber: "559118266482"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(EMPTY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def vt(*arguments, code=0):
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == code, done.output
    return done


def files(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def job_of(root, name):
    return yaml.safe_load((root / "jobs" / f"{name}.yaml").read_text())


def test_nothing_that_is_there_is_overwritten(project):
    vt("new", "job", "train", "--package", "--write")
    before = files(project)
    assert "has a job train already" in vt("new", "job", "train", "--package", code=2).stderr
    (project / "jobs" / "other.yaml").write_text("mine")
    (project / "jobs" / "third").mkdir()
    (project / "jobs" / "third" / "task.py").write_text("mine")
    for name in ("other", "third"):
        told = vt("new", "job", name, "--package", "--write", code=2).stderr
        assert "is there already" in told
    assert {k: v for k, v in files(project).items() if v != b"mine"} == before


def test_a_mistake_of_a_choice_is_told_with_its_rule(project):
    done = vt("new", "job", "x", "--package", "--machine", "n9-huge-4", code=1)
    assert "n9-huge-4" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("x",), "say what it runs"),
        (("x", "--image", "a/b/c/d:1", "--package"), "choose one of"),
        (("Big Job", "--package"), "write big-job"),
        (("x", "--package", "--stack", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_begun_is_one_line(project, arguments, told):
    assert told in vt("new", "job", *arguments, code=2).stderr
