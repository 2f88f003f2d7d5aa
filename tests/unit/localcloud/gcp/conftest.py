"""Running plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2_grpc

from localgcp.gcp.server import serve
from localgcp.storage.emulator import StorageEmulator
from tests.unit.localcloud.conftest import free_port
from tests.unit.localcloud.gcp.harness import Plugin


@pytest.fixture
def plugin_for() -> Iterator[Any]:
    """Starts plugins: ``plugin_for(project, region, **environment)``."""
    running: list[tuple[grpc.Server, grpc.Channel]] = []

    def start(project: str, region: str = "us-central1", **environment: str) -> Plugin:
        server, port = serve(environment)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        running.append((server, channel))
        return Plugin(provider_pb2_grpc.ResourceProviderStub(channel), project, region)

    yield start
    for server, channel in running:
        channel.close()
        server.stop(grace=None).wait()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageEmulator]:
    home = tmp_path_factory.mktemp("home")
    running = StorageEmulator(home / "storage", home / "storage.log", home / "notes")
    running.start(free_port())
    yield running
    running.stop()


@pytest.fixture
def abroad(plugin_for: Any) -> Plugin:
    """The plugin for a project that is not local, with no local cloud around."""
    return plugin_for("p1")


@pytest.fixture
def local(plugin_for: Any, tmp_path: Path) -> Plugin:
    """The plugin for a local project, without object storage."""
    return plugin_for("local-p1", VT_LOCAL_HOME=str(tmp_path))
