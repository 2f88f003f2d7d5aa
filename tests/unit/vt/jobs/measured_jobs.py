"""Two jobs with metrics in the local cloud, and `vt jobs` of their stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.submitting import done, submit_with
from vertex_training_cli.cli import app


@pytest.fixture
def cloud(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cloud]:
    """Two jobs `a` and `b`, of which `a` wrote metrics."""
    cloud = make_cloud(storage=True)
    assert cloud.storage is not None
    jobs = JobService(cloud.store, cloud.jobs, cloud.scheduler)
    logs = LogService(cloud.home, cloud.store, cloud.jobs)
    server = serve([jobs, cloud.studies, logs], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    cloud.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
    cloud.bucket("out")
    made = storage_client(cloud.storage.url).bucket("out")
    made.blob("a/model/metrics.json").upload_from_string(json.dumps({"loss": 9}))
    made.blob("a/metrics.json").upload_from_string(json.dumps({"loss": 0.25, "name": "x"}))
    made.blob("b/metrics.json").upload_from_string('{"loss": ')
    for job in ("a", "b"):
        done(cloud, submit_with(cloud, f"true {job}", job, _labels(job), output=f"gs://out/{job}"))
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    text = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
    (tmp_path / "Pulumi.local.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield cloud
    server.stop(None).wait()


def _labels(job: str) -> dict[str, str]:
    return {"vt-stack": "local", "vt-job": job, "vt-run": "1", "vt-request-id": job}


@pytest.fixture
def vt(cloud: Cloud) -> Callable[..., str]:
    """`vt jobs …` with the two jobs."""

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["jobs", *words, "--stack", "local"])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run
