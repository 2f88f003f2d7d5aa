"""Outside of ``vt local shell`` the local cloud's registry is found, and nothing is started."""

import os

import pytest

from localgcp import lifecycle
from localgcp.server_info import ServerInfo
from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import connection

ADDRESSES = ("ARTIFACT_REGISTRY", "VERTEX", "STORAGE")


@pytest.fixture
def ref(tmp_path, monkeypatch):
    for name in ADDRESSES:
        monkeypatch.delenv(f"{name}_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ) | {"VT_LOCAL_HOME": str(tmp_path / "home")})
    return StackRef(tmp_path, "vertex-training", "one", "local-one", "us-central1")


def addresses():
    return [os.environ.get(f"{name}_EMULATOR_HOST") for name in ADDRESSES]


def test_a_local_cloud_that_runs_is_found_with_all_its_addresses(ref, monkeypatch):
    info = ServerInfo(4242, 2, 3, "2026-11-22T00:00:00Z", 4)
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    connection.connect(ref, lambda _: None, start=False)
    assert addresses() == ["127.0.0.1:4", "127.0.0.1:2", "http://127.0.0.1:3"]


def test_a_local_cloud_that_does_not_run_is_named_and_not_started(ref, monkeypatch):
    monkeypatch.setattr(lifecycle, "running", lambda _: None)
    with pytest.raises(CommandError, match="the local cloud does not run"):
        connection.connect(ref, lambda _: None, start=False)
    assert addresses() == [None, None, None]


def test_a_stack_of_google_gets_no_address(ref, monkeypatch):
    monkeypatch.setattr(lifecycle, "running", lambda _: pytest.fail("asked"))
    google = StackRef(ref.root, "vertex-training", "dev", "acme-ml-dev", "us-central1")
    connection.connect(google, lambda _: None, start=False)
    assert addresses() == [None, None, None]
