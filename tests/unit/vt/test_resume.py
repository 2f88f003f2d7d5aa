"""`rerun --resume`: the next run has the folder of the newest one, if that left a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from localgcp.apis.server import serve
from localgcp.inventory.store import project_number
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, cloud, home, make_cloud
from tests.unit.vt.jobs.submitting import done, submit_with
from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.job_files import with_folder_of

__all__ = ["cloud", "home", "make_cloud"]

STACK = f"""\
config:
  gcp:project: {PROJECT}
  gcp:region: us-central1
  vertex-training:projectNumber: "{project_number(PROJECT)}"
  vertex-training:buckets: {{artifacts: {{}}}}
  vertex-training:serviceAccounts: {{trainer: {{writes: [artifacts]}}}}
  vertex-training:jobs:
    train: {{file: jobs/train.yaml}}
"""
JOB = """\
serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/train/${job.requestId}"}  # its own
scheduling: {timeout: 3600s}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec: {imageUri: IMAGE, command: ["true"]}
""".replace("IMAGE", "us-docker.pkg.dev/acme-ml/images/x@sha256:" + "a" * 64)
FOLDER = "train/0123456789abcdef0123"


@pytest.fixture
def rerun(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    """`vt jobs rerun train --resume` after a run; ``saved``: it left a checkpoint."""
    cloud = make_cloud(storage=True)
    assert cloud.storage is not None
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
    bucket = f"{PROJECT}-artifacts-local"
    cloud.bucket(bucket)
    labels = {"vt-stack": "local", "vt-job": "train", "vt-run": "1"}
    labels["vt-request-id"] = FOLDER.partition("/")[2]
    done(cloud, submit_with(cloud, "true", "train", labels, output=f"gs://{bucket}/{FOLDER}/"))
    checkout = tmp_path / "checkout"
    (checkout / "jobs").mkdir(parents=True)
    (checkout / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (checkout / "Pulumi.local.yaml").write_text(STACK)
    (checkout / "jobs" / "train.yaml").write_text(JOB)
    monkeypatch.chdir(checkout)

    def run(*words: str, saved: bool = True) -> Result:
        if saved:
            url = cloud.storage.url if cloud.storage else ""
            blob = storage_client(url).bucket(bucket).blob(f"{FOLDER}/checkpoints/step-1/a.pt")
            blob.upload_from_string(b"state")
        words = ("jobs", "rerun", "train", "--stack", "local", "--resume", *words)
        return CliRunner().invoke(app, words)

    yield run
    server.stop(None).wait()


def test_other_jobs_of_the_same_file_get_the_folder_too(
    rerun: Callable[..., Result],
) -> None:
    others = "".join(f"    {name}: {{file: jobs/train.yaml}}\n" for name in ("a", "b"))
    Path("Pulumi.local.yaml").write_text(STACK + others)
    assert "the output directory of a, b also change: they use the same job file" in rerun().stderr


def test_run_without_a_checkpoint_is_not_resumed(rerun: Callable[..., Result]) -> None:
    result = rerun("--write", saved=False)
    assert result.exit_code == 2
    folder = f"gs://{PROJECT}-artifacts-local/{FOLDER}/checkpoints/"
    assert f"the newest run of job train has no checkpoint in {folder}." in result.stderr
    assert Path("jobs/train.yaml").read_text() == JOB
    assert Path("Pulumi.local.yaml").read_text() == STACK


SPEC = """\
baseOutputDirectory: {outputUriPrefix: "gs://b/x/${job.requestId}"}  # kept
workerPoolSpecs: []
"""
NONE = "f.yaml has no output directory. Hint: add baseOutputDirectory to the file"
BLOCK = "baseOutputDirectory:\n  outputUriPrefix: |-\n    gs://b/x/${job.requestId}\n"
PLACE = (
    "f.yaml: cannot edit the output directory in place. "
    "Hint: set outputUriPrefix to gs://b/x/0123456789abcdef0123 by hand"
)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (SPEC, ""),
        ("jobSpec:\n" + "".join(f"  {line}\n" for line in SPEC.splitlines()), ""),
        (SPEC.replace("eO", "e_o").replace("tD", "t_d").replace("tU", "t_u").replace("iP", "i_p"),
         ""),
        (SPEC.replace("/${job.requestId}", ""), ""),  # one folder for all runs
        ("workerPoolSpecs: []\n", NONE),
        ("baseOutputDirectory:\nworkerPoolSpecs: []\n", NONE),
        (BLOCK, PLACE),
    ],
)  # fmt: skip
def test_output_directory_of_the_earlier_run_replaces_the_own_one(text: str, refused: str) -> None:
    id_ = FOLDER.partition("/")[2]
    if not refused:
        assert with_folder_of(text, id_, "f.yaml") == text.replace("${job.requestId}", id_)
        return
    with pytest.raises(CommandError) as error:
        with_folder_of(text, id_, "f.yaml")
    assert str(error.value) == refused
