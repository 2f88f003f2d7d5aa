"""The environment of gcloud and gsutil in the local shell."""

from __future__ import annotations

import configparser
import stat
import subprocess
from pathlib import Path

import pytest

from localgcp.clients import cloud_sdk
from localgcp.environment import environment
from localgcp.home import Home, Ports
from localgcp.tools import install_tools


@pytest.mark.parametrize(
    "name",
    [
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
        "CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE",
        "CLOUDSDK_ACTIVE_CONFIG_NAME",
        "CLOUDSDK_CORE_ACCOUNT",
        "CLOUDSDK_PROXY_ADDRESS",
        "BOTO_PATH",
    ],
)
def test_settings_that_lead_to_another_cloud_are_left_outside(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "elsewhere")
    assert environment(home, Ports(1, 2)).get(name) != "elsewhere"


def test_what_gcloud_needs_to_run_is_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_PYTHON", "/usr/bin/python3")
    assert environment(home, Ports(1, 2))["CLOUDSDK_PYTHON"] == "/usr/bin/python3"


@pytest.mark.parametrize(
    ("name", "removed"),
    [
        ("CLOUDSDK_AUTH_X", True),
        ("CLOUDSDK_API_X", True),
        ("CLOUDSDK_PROXY_X", True),
        ("CLOUDSDK_BILLING_QUOTA_PROJECT", True),
        ("CLOUDSDK_CORE_ACCOUNT", True),
        ("CLOUDSDK_CORE_PROJECT", True),
        ("CLOUDSDK_ACTIVE_CONFIG_NAME", True),
        ("CLOUDSDK_CONFIG", True),
        ("BOTO_CONFIG", True),
        ("CLOUDSDK_CORE_VERBOSITY", False),
        ("CLOUDSDK_PYTHON", False),
        ("MY_CLOUDSDK_AUTH_", False),
        ("BOTO", False),
    ],
)
def test_what_names_credentials_or_a_place_is_removed(name: str, removed: bool) -> None:
    assert cloud_sdk.is_removed(name) is removed


def test_both_programs_are_led_here_without_credentials(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "sdk"
    services = [
        "AIPLATFORM", "ARTIFACTREGISTRY", "BATCH", "CLOUDBUILD", "CLOUDKMS",
        "CLOUDRESOURCEMANAGER", "COMPUTE", "IAM", "IAMCREDENTIALS", "LOGGING", "RUN",
        "SECRETMANAGER", "SERVICEUSAGE",
    ]  # fmt: skip
    here = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{each}": "http://127.0.0.1:1/" for each in services}
    assert cloud_sdk.environment(folder, 2, 1) == here | {
        "CLOUDSDK_CONFIG": str(folder),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": "http://127.0.0.1:2/storage/v1/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL": "1",
        "BOTO_CONFIG": f"{folder}/boto.cfg",
    }
    for _ in range(2):
        cloud_sdk.write_settings(folder)
    settings = configparser.ConfigParser()
    assert settings.read(f"{folder}/boto.cfg")
    assert {name: dict(settings[name]) for name in settings.sections()} == {
        "GSUtil": {
            "use_gcloud_storage": "True",
            "hidden_shim_mode": "no_fallback",
            "software_update_check_period": "0",
            "state_dir": f"{folder}/gsutil",
        },
        "Boto": {"num_retries": "1"},
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_preview_without_a_server_gets_no_address(home: Home) -> None:
    assert not [name for name in home.environment(None) if name.startswith("CLOUDSDK_API_")]


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
