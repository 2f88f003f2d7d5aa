"""TensorBoard's event files. Those of the fixtures were written by TensorBoard 2.20."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import Cloud
from tests.unit.vt.jobs.test_metrics import cloud, vt

__all__ = ["cloud", "vt"]
WRITTEN = Path("tests/fixtures/tensorboard").absolute()


@pytest.fixture
def logs(cloud: Cloud) -> Callable[[str, bytes], None]:
    """Write a file of the TensorBoard logs of job `b`."""
    assert cloud.storage is not None
    out = storage_client(cloud.storage.url).bucket("out")

    def write(name: str, content: bytes) -> None:
        out.blob(f"b/logs/{name}").upload_from_string(content)

    return write


@pytest.fixture
def real(logs: Callable[[str, bytes], None]) -> None:
    """Job `b` wrote `simple_value`, as PyTorch does, and tensors, as TensorFlow does."""
    for path in WRITTEN.rglob("events.*"):
        logs(path.relative_to(WRITTEN).as_posix(), path.read_bytes())


@pytest.mark.usefixtures("real")
def test_scalars_of_pytorch_and_tensorflow_are_metrics_and_curves(vt: Callable[..., str]) -> None:
    newest = {
        "train/loss": 0.25,
        "precise": 0.1,
        "validation/epoch_loss": 1.5,
        "validation/rate": 0.125,
    }
    listed = json.loads(vt("list", "--metrics", "--format", "json"))
    assert {each["job"]: each["metrics"] for each in listed} == {"a": {"loss": 0.25}, "b": newest}
    assert "train/loss" in vt("list", "--metrics")
    assert "validation/epoch_loss" in vt("show", "b")
    [compared] = json.loads(vt("compare", "b", "--format", "json"))
    assert compared["metrics"] == newest
    assert compared["curves"]["train/loss"] == [1.0, 0.5, 0.25]
    assert compared["curves"]["validation/epoch_loss"] == [2.0, 1.5]
    assert "█▃▁ 1 → 0.25" in vt("compare", "b")
    vt("compare", "b", "--html", "runs.html")
    assert "<strong>train/loss</strong>, 0.25 to 1, 3 values" in Path("runs.html").read_text()
