"""The files of an edited job: what changes of them, and that the order of the others stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify.edits import edited_job, write_edit

SPEC = """\
serviceAccount: s
workerPoolSpecs:
- replicaCount: 1
  TASK:
    imageUri: i
    args:
    - --epochs=3
- replicaCount: 2
"""
LONG = """\
serviceAccount: s
workerPoolSpecs:
- replicaCount: 1
  TASK:
    imageUri: i
    args:
    - --epochs=3
    - --epochs=100000000
    - --patience=100000000
- replicaCount: 2
"""


def below(text: str) -> str:
    return "jobSpec:\n" + "".join(f"  {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("task", ["containerSpec", "pythonPackageSpec"])
def test_a_job_trains_for_long_under_a_name_of_its_own(task: str) -> None:
    spec, long = (text.replace("TASK", task) for text in (SPEC, LONG))
    assert edited_job(spec, "mine") == f"{below(long)}displayName: mine\n"
    whole = f"labels:\n  z: a\n{below(spec)}displayName: other\nencryptionSpec: {{}}\n"
    assert edited_job(whole, "mine") == (
        f"labels:\n  z: a\n{below(long)}displayName: mine\nencryptionSpec: {{}}\n"
    )


STACK = """\
encryptionsalt: own
config:
  gcp:project: acme
  KEY:
    train:
      run: 2
      file: FILE
    other:
      file: jobs/other.yaml
"""


@pytest.mark.parametrize("key", ["vertex-training:jobs", "jobs"])
@pytest.mark.parametrize(
    ("provider", "before", "behind"),
    [
        ({"type": "passphrase", "state": {"salt": "v1:x"}}, "encryptionsalt: v1:x\n", ""),
        ({"type": "cloud", "state": {"url": "gcpkms://k", "encryptedkey": "AbC="}},
         "encryptionsalt: own\n", "secretsprovider: gcpkms://k\nencryptedkey: AbC=\n"),
        ({"type": "service", "state": {"url": "x"}}, "encryptionsalt: own\n", ""),
        ({}, "encryptionsalt: own\n", ""),
        (None, "encryptionsalt: own\n", ""),
    ],
)  # fmt: skip
def test_a_copy_of_the_stack_file_names_the_job_and_opens_the_secrets_of_the_state(
    tmp_path: Path, key: str, provider: Any, before: str, behind: str
) -> None:
    own = STACK.replace("KEY", key).replace("FILE", "train.yaml")
    (tmp_path / "Pulumi.first.yaml").write_text(own)
    (tmp_path / "train.yaml").write_text(SPEC.replace("TASK", "containerSpec"))
    ref = StackRef(tmp_path, "p", "first", "acme", "us-central1")
    deployment = {"secrets_providers": provider}
    file = write_edit(ref, tmp_path / ".build" / "v", "train", "train-replaced-1", deployment)
    assert file == tmp_path / ".build" / "v" / "Pulumi.train-replaced-1.yaml"
    changed = STACK.replace("KEY", key).replace("FILE", ".build/v/train-replaced-1.yaml")
    assert file.read_text() == changed.replace("encryptionsalt: own\n", before) + behind
    job = tmp_path / ".build" / "v" / "train-replaced-1.yaml"
    long = below(LONG.replace("TASK", "containerSpec"))
    assert job.read_text() == f"{long}displayName: train-replaced-1\n"
    assert (tmp_path / "Pulumi.first.yaml").read_text() == own
    with pytest.raises(CommandError) as refused:
        write_edit(ref, tmp_path / "v", "none", "x", deployment)
    assert str(refused.value) == "Pulumi.first.yaml has no job none, or includes it."
