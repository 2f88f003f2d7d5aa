"""Running plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2_grpc

from localgcp.gcp.emulator import Emulator
from localgcp.gcp.server import serve
from tests.unit.localcloud.gcp.estate import Estate
from tests.unit.localcloud.gcp.harness import Plugin


@pytest.fixture
def plugin_for() -> Iterator[Any]:
    """Starts plugins: ``plugin_for(project, **environment)``."""
    running: list[tuple[grpc.Server, grpc.Channel]] = []

    def start(project: str, **environment: str) -> Plugin:
        server, port = serve(environment)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        running.append((server, channel))
        return Plugin(provider_pb2_grpc.ResourceProviderStub(channel), project)

    yield start
    for server, channel in running:
        channel.close()
        server.stop(grace=None).wait()


@pytest.fixture
def deleted_buckets(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of buckets that the storage emulator has no more; it has all others."""
    gone = set[str]()
    storage = SimpleNamespace(has_bucket=lambda name: name not in gone)
    monkeypatch.setattr(Emulator, "of", staticmethod(lambda _cloud: storage))
    return gone


@pytest.fixture
def abroad(plugin_for: Any) -> Plugin:
    """The plugin for a project that is not local, with no local cloud around."""
    return plugin_for("p1")


@pytest.fixture
def local(plugin_for: Any, tmp_path: Path) -> Plugin:
    """The plugin for a local project, without object storage."""
    return plugin_for("local-p1", VT_LOCAL_HOME=str(tmp_path))


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """A local project with a network, a subnetwork and a router; no plugin."""
    return Estate(tmp_path)
