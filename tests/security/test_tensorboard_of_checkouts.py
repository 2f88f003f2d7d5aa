"""``vt tensorboard`` in somebody's checkout runs TensorBoard, and no module of that name there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp.home import Home
from tests.unit.localcloud.conftest import Cloud
from tests.unit.vt.jobs.test_metrics import cloud
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import tensorboard

__all__ = ["cloud"]


@pytest.mark.parametrize("path", ["", "PYTHONPATH"])
def test_a_module_of_the_checkout_is_not_taken_for_tensorboard(
    path: str, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VT_LOCAL_HOME", raising=False)
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    installed = tensorboard._environment()
    (installed / "bin").mkdir(parents=True)
    (installed / "bin" / "python").symlink_to(sys.executable)
    (installed / ".installed").touch()
    checkout = Path.cwd()
    Home.find().create()
    logs = Home.find().storage / "out" / "a" / "logs"
    logs.mkdir(parents=True)
    (logs / "events.out.tfevents.1").touch()
    (checkout / "tensorboard").mkdir()
    (checkout / "tensorboard" / "__init__.py").touch()
    (checkout / "tensorboard" / "main.py").write_text("open('ran', 'w')")
    if path:
        monkeypatch.setenv(path, str(checkout))
    said = CliRunner().invoke(app, ["tensorboard", "a", "--stack", "local"])
    assert "TensorBoard on the logs of" in said.output
    assert not (checkout / "ran").exists()
