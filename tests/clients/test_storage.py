"""gcloud and gsutil copy files in the local shell without a line of settings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from localgcp import lifecycle
from tests.clients.conftest import Shell
from tests.security.other_user import UID, needs_root

pytestmark = pytest.mark.timeout(600)
TEXT = "text ä\n"


@pytest.fixture(scope="module")
def bucket(shell: Shell, gcloud: str) -> str:
    shell.run("gcloud storage buckets create gs://crate && mkdir -p tree/deep")
    (shell.folder / "tree" / "a.txt").write_text(TEXT)
    (shell.folder / "tree" / "deep" / "b.bin").write_bytes(bytes(range(256)) * 5000)
    return "gs://crate"


def test_gcloud_copies_a_folder_there_and_back_and_removes_it(shell: Shell, bucket: str) -> None:
    shell.run(f"gcloud storage cp -r tree {bucket}/up/ && mkdir back")
    done = shell.run(
        f"gcloud storage ls {bucket}/up/tree/** && gcloud storage cat {bucket}/up/tree/a.txt"
    )
    assert done.stdout.split("\n")[0] == f"{bucket}/up/tree/a.txt"
    assert done.stdout.endswith(TEXT)
    shell.run(
        f"gcloud storage cp -r {bucket}/up/tree back/ && diff -r tree back/tree && "
        f"gcloud storage rm -r {bucket}/up"
    )
    assert "matched no objects" in shell.run(f"gcloud storage ls {bucket}/up/", 1).stderr


def test_gsutil_copies_lists_and_shows(shell: Shell, bucket: str, gsutil: str) -> None:
    done = shell.run(
        f"gsutil -m cp -r tree {bucket}/runs/1/ && gsutil ls {bucket}/runs/** && "
        f"gsutil cat {bucket}/runs/**/a.txt"
    )
    assert "/deep/b.bin" in done.stdout
    assert done.stdout.endswith(TEXT)


def test_unsupported_command_of_gsutil_reaches_nothing(shell: Shell, gsutil: str) -> None:
    assert "gcloud storage" in shell.run("gsutil perfdiag gs://box", 1).stderr


def test_gcloud_has_the_stacks_project_and_no_user_settings(shell: Shell, gcloud: str) -> None:
    found = json.loads(shell.run("gcloud config list --all --format=json").stdout)
    assert found["core"]["project"] == "local-training"
    assert found["ai"]["region"] == "us-central1"
    assert found["core"]["account"] is None
    assert found["auth"]["disable_credentials"] == "true"
    assert found["auth"]["access_token_file"] is None


@needs_root
def test_gcloud_of_another_user_is_refused(shell: Shell, bucket: str, gcloud: str) -> None:
    info = lifecycle.running(shell.home)
    assert info is not None
    env = shell.home.environment(info.ports)
    env = {name: value for name, value in env.items() if name.startswith("CLOUDSDK_")}
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, UID, UID)
    try:
        done = subprocess.run(
            [gcloud, "storage", "ls", bucket],
            env={**env, "PATH": os.environ["PATH"], "CLOUDSDK_CONFIG": str(folder)},
            cwd=folder,
            user=UID,
            group=UID,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 1
    assert "only processes of the user who started the local cloud may connect" in done.stderr
