"""A stack with an image, a registry in this process, and a program that builds."""

import os

import pytest
from typer.testing import CliRunner

from tests.unit.vt.images import stand_in
from vertex_training.naming import local_project_number
from vertex_training_cli.cli import app

STACK = """\
# What this stack is.
config:
  gcp:project: {project}
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:buckets: {{artifacts: {{}}}}  # where results go
  vertex-training:images:
    # the trainer
    train: {image}   # pinned
"""


def write_stack(root, name, project, image):
    (root / f"Pulumi.{name}.yaml").write_text(
        STACK.format(project=project, number=local_project_number(project), image=image)
    )


@pytest.fixture
def registry(monkeypatch):
    made = stand_in.Registry()
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", made.address)
    yield made
    made.stop()


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "programs"
    folder.mkdir()
    stand_in.install_buildah(folder)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def root(tmp_path, monkeypatch):
    folder = tmp_path / "checkout"
    (folder / "jobs" / "train").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (folder / "jobs" / "train" / "Dockerfile").write_text("FROM python:3.11-slim\nCOPY . /app\n")
    (folder / "jobs" / "train" / "train.py").write_text("print(1)\n")
    write_stack(folder, "one", "local-one", "{context: jobs/train}")
    write_stack(folder, "two", "local-two", "{digest: 'sha256:" + "0" * 64 + "'}")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def vt():
    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run
