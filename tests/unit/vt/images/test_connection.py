"""Outside of ``vt local shell`` the local cloud's registry is found, and nothing is started."""

import os

import pytest

from localgcp import lifecycle
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


def test_a_local_cloud_that_does_not_run_is_named_and_not_started(ref, monkeypatch):
    monkeypatch.setattr(lifecycle, "running", lambda _: None)
    with pytest.raises(CommandError, match="the local cloud does not run"):
        connection.connect(ref, lambda _: None, start=False)
    assert addresses() == [None, None, None]
