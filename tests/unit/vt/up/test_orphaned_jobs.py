"""Which jobs `vt up` tells of after an `up`, by the official client against a service in this
process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localgcp.apis.server import serve
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up.command import report_orphaned_jobs

Told = Callable[..., list[str]]


@pytest.fixture
def told(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What is told of stack `local` whose state holds the resources with these ids."""
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")

    def tell(*ids: str) -> list[str]:
        said: list[str] = []
        where = StackRef(Path(), "demo", "local", PROJECT, "us-central1")
        resources = [{"urn": "of the stack itself"}, *({"id": id_} for id_ in ids)]
        report_orphaned_jobs(where, {"resources": resources}, said.append)
        return said

    yield tell
    server.stop(None).wait()


def test_a_service_that_does_not_answer_is_told_and_no_failure(
    told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    [line] = told()
    assert line.startswith("cannot check for running jobs missing from the state of stack local: ")
    assert "the local cloud is not running. Hint: run `vt local start`" in line
