"""Which stack a command is about, and where it lives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp import lifecycle
from localgcp.home import REGISTRY
from localgcp.server_info import ServerInfo
from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.images import connection


def test_a_stack_is_found_from_a_folder_below_its_project(project: Path) -> None:
    found = stacks.find("dev", project / "jobs")
    assert found == stacks.StackRef(project, "vertex-training", "dev", "acme-ml-dev", "us-central1")
    assert found.parent == "projects/acme-ml-dev/locations/us-central1"


def test_a_deployment_needs_a_named_state_and_takes_the_tools_of_this_python(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BACKEND, raising=False)
    found = stacks.find("dev", project)
    with pytest.raises(CommandError, match="PULUMI_BACKEND_URL is not set"):
        found.deployment_environment(print)
    monkeypatch.setenv(BACKEND, "gs://acme-state")
    monkeypatch.setenv("PATH", "/bin")
    path = found.deployment_environment(print)["PATH"]
    assert path == f"{Path(stacks.sys.executable).parent}:/bin"


def test_a_renamed_job_is_found_by_the_name_in_its_labels(tmp_path):
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  vertex-training:jobs:\n    fit: {file: x.yaml, formerly: titanic}\n    odd: 1\n"
    )
    ref = stacks.StackRef(tmp_path, "p", "dev", "acme-ml-dev", "us-central1")
    assert [ref.first_key(key, "jobs", "tuning") for key in ("fit", "odd", "new")] == [
        "titanic",
        "odd",
        "new",
    ]


def test_clients_of_jobs_and_of_images_reach_the_same_local_cloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A review looks at jobs first: its look at images found no registry."""
    info = ServerInfo(4242, 1001, 1002, "now", 1003)
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    for name in (stacks.EMULATOR, stacks.STORAGE_EMULATOR, REGISTRY):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    ref = stacks.StackRef(tmp_path, "demo", "local", "local-training", "us-central1")
    ref.connect_clients()
    connection.connect(ref, lambda _: None, start=False)
    assert os.environ[REGISTRY] == "127.0.0.1:1003"
    assert os.environ[stacks.EMULATOR] == "127.0.0.1:1001"
