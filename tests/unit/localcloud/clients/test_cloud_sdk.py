"""The environment of gcloud and gsutil in the local shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from localgcp.clients import cloud_sdk
from localgcp.environment import environment
from localgcp.home import Home, Ports
from localgcp.tools import install_tools


def test_the_defaults_are_those_of_the_stack() -> None:
    config = {"gcp:project": "local-training", "gcp:region": "us-central1", "other": 1}
    assert cloud_sdk.defaults(config) == {
        "CLOUDSDK_CORE_PROJECT": "local-training",
        "CLOUDSDK_AI_REGION": "us-central1",
    }
    assert cloud_sdk.defaults({"gcp:project": None}) == {}


def test_gcloud_has_a_home_of_its_own(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write keys for ssh, and settings of Docker and kubectl, into the user's."""
    program = tmp_path / "sdk" / "gcloud"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$HOME;$DOCKER_CONFIG;$KUBECONFIG;$*"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home.bin}:{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    for _ in range(2):  # the second time it lies on PATH itself
        install_tools(home)
        env = environment(home, Ports(1, 2))
        done = subprocess.run(
            ["gcloud", "auth", "a b"], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{home.cloud_sdk / 'home'};;;auth a b\n"
    assert env["DOCKER_CONFIG"] == str(tmp_path)  # docker itself keeps the user's
    program.unlink()
    monkeypatch.setenv("PATH", "/usr/bin-without")
    install_tools(home)
    assert not (home.bin / "gcloud").exists()
