"""A small project in a folder of its own, and the command line in this process."""

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app

JOB = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/a/${job.requestId}"}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec:
      imageUri: ${images.trainer}
      args: ["--data=${buckets.data}/train"]
"""
DIGEST = "sha256:" + "a" * 64
STACK = f"""\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: 210987654321
  vertex-training:labels: {{team: ml}}
  vertex-training:buckets: {{data: {{}}, artifacts: {{}}}}
  vertex-training:deployers: ["serviceAccount:ci-deploy-dev@acme-ml-dev.iam.gserviceaccount.com"]
  vertex-training:serviceAccounts:
    trainer: {{reads: [data], writes: [artifacts]}}
  vertex-training:images:
    trainer: {{digest: "{DIGEST}"}}
  vertex-training:jobs:
    train: {{file: jobs/train.yaml}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    (tmp_path / "jobs" / "train.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def vt():
    def run(*arguments, **options):
        return CliRunner().invoke(app, [str(a) for a in arguments], **options)

    return run
