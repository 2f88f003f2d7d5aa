"""The folder of a local cloud: where its files are, and which folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp import home
from localgcp.home import Home


def test_the_files_of_a_home_keep_their_places_from_version_to_version() -> None:
    home = Home(Path("/home"), Path("/checkout"))
    names = {
        "database": "cloud.sqlite",
        "faults": "faults.sqlite",
        "storage": "storage",
        "storage_log": "storage.log",
        "registry": "registry",
        "registry_log": "registry.log",
        "registries": "registries.conf",
        "batch": "batch",
        "bigquery": "bigquery",
        "serving": "serving",
        "notifications": "notifications",
        "wheels": "wheels",
        "nearest_images": "nearest-images",
        "builders": "containers.conf",
        "cloud_sdk": "cloud-sdk",
        "containers": "containers",
        "builds": "builds",
        "jobs": "jobs",
        "server_file": "server.json",
        "server_log": "server.log",
        "server_lock": "server.lock",
        "start_lock": "start.lock",
        "children": "run",
        "pulumi": "pulumi",
        "pulumi_home": "pulumi-home",
        "stacks": "stacks",
        "bin": "bin",
        "secrets": "secrets",
        "sockets": "sockets",
    }

    properties = {name for name, value in vars(Home).items() if isinstance(value, property)}
    assert {name: getattr(home, name) for name in properties} == {
        name: Path("/home") / place for name, place in names.items()
    }


def test_elsewhere_it_serves_the_checkout_of_this_program_else_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mine"
    checkout = Path(__file__).resolve().parents[3]

    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, checkout)
    monkeypatch.setattr(home, "__file__", str(tmp_path / "installed" / "localgcp" / "home.py"))
    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, tmp_path)
