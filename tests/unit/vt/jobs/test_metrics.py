"""`vt jobs list --metrics`, `show` and `compare`: read through the real client and emulator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp.apis.server import serve
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.submitting import done, submit_with
from vertex_training_cli.cli import app
from vertex_training_cli.jobs.compare import curves, parameters
from vertex_training_cli.jobs.metrics import columns, numbers

HISTORY = "epoch,loss,accuracy\n1,1.0,0.2\n2,0.5,0.6\n3,0.25,0.9\n"


@pytest.fixture
def vt(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., str]]:
    """`vt jobs …` with two jobs `a` and `b`, of which `a` wrote metrics and a history."""
    cloud = make_cloud(storage=True)
    assert cloud.storage is not None
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    cloud.bucket("out")
    made = storage_client(cloud.storage.url).bucket("out")
    made.blob("a/model/metrics.json").upload_from_string(json.dumps({"loss": 9}))
    made.blob("a/metrics.json").upload_from_string(json.dumps({"loss": 0.25, "name": "x"}))
    made.blob("a/eval_history.csv").upload_from_string(HISTORY)
    made.blob("b/metrics.json").upload_from_string('{"loss": ')
    for job in ("a", "b"):
        labels = {"vt-stack": "local", "vt-job": job, "vt-run": "1", "vt-request-id": job}
        done(cloud, submit_with(cloud, f"true {job}", job, labels, output=f"gs://out/{job}"))
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    text = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
    (tmp_path / "Pulumi.local.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["jobs", *words, "--stack", "local"])
        assert result.exit_code == 0, result.output
        return result.stdout

    yield run
    server.stop(None).wait()


def test_numbers_of_the_nearest_file_are_in_list_and_show(vt: Callable[..., str]) -> None:
    assert "loss" in vt("list", "--metrics")
    listed = {
        each["job"]: each["metrics"]
        for each in json.loads(vt("list", "--metrics", "--format", "json"))
    }
    assert listed == {"a": {"loss": 0.25}, "b": {}}  # a file that was cut short is none
    assert "metrics" not in json.loads(vt("list", "--format", "json"))[0]
    assert "0.25" in vt("show", "a")


def test_jobs_stand_side_by_side_with_what_differs(vt: Callable[..., str]) -> None:
    shown = vt("compare", "a", "b")
    assert "a 1" in shown
    assert "b 1" in shown
    assert "█▃▁ 1 → 0.25" in shown
    one, two = json.loads(vt("compare", "a", "b", "--format", "json"))
    assert one["metrics"] == {"loss": 0.25}
    assert one["curves"] == {"loss": [1.0, 0.5, 0.25], "accuracy": [0.2, 0.6, 0.9]}
    assert (two["metrics"], two["curves"]) == ({}, {})
    assert one["cost"].startswith("$")


def test_parameters_are_the_flags_of_all_pools_without_secrets() -> None:
    pool = {
        "replicaCount": 2,
        "machineSpec": {"machineType": "n1-standard-4"},
        "containerSpec": {
            "imageUri": "a/b:1",
            "args": ["--lr=0.1", "--epochs", "3", "--fast", "x"],
        },
    }
    token = "hf_" + "a" * 34
    found = parameters({"jobSpec": {"workerPoolSpecs": [pool]}})
    wanted = {"--lr": "0.1", "--epochs": "3", "--fast": "x", "pool 0": "2 x n1-standard-4"}
    assert found == {**wanted, "code": "b:1"}
    pool["containerSpec"]["args"] = [f"--token={token}"]  # pyright: ignore
    assert token not in str(parameters({"jobSpec": {"workerPoolSpecs": [pool]}}))
    assert parameters({}) == {}


@pytest.mark.parametrize("data", [b"", b"a", b"a,b\n", b"a,b\n1,x\n", b"\xff,\xfe\n1,\n"])
def test_a_history_that_is_none_has_no_curves(data: bytes) -> None:
    assert columns(data) == {}


def test_numbers_that_are_not_finite_are_drawn_as_such() -> None:
    assert curves([[1.0, float("nan"), float("inf")], []])[0].startswith("▁??")
    assert numbers([1, 2]) == {}
