"""Tests that ``vt tensorboard`` runs no module of a checkout, and shows only logs of jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp.home import Home, ToolEnvironment
from tests.unit.localcloud.conftest import Cloud
from tests.unit.vt.jobs import submitting
from tests.unit.vt.jobs.measured_jobs import cloud
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import tensorboard

__all__ = ["cloud"]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a Python without TensorBoard as its environment, and return a home."""
    monkeypatch.delenv("VT_LOCAL_HOME", raising=False)
    monkeypatch.setenv("VT_CACHE_DIR", str(folder / "cache"))
    installed = ToolEnvironment("tensorboard", tensorboard.PINS)
    (installed.folder / "bin").mkdir(parents=True)
    (installed.folder / "bin" / "python").symlink_to(sys.executable)
    installed.marker.touch()
    Home.find().create()


def write_logs(output: Path) -> None:
    (output / "logs").mkdir(parents=True)
    (output / "logs" / "events.out.tfevents.1").touch()


@pytest.mark.parametrize("path", ["", "PYTHONPATH"])
def test_module_of_the_checkout_does_not_replace_tensorboard(
    path: str, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Path.cwd()
    install(tmp_path, monkeypatch)
    write_logs(Home.find().storage / "out" / "a")
    (checkout / "tensorboard").mkdir()
    (checkout / "tensorboard" / "__init__.py").touch()
    (checkout / "tensorboard" / "main.py").write_text("open('ran', 'w')")
    if path:
        monkeypatch.setenv(path, str(checkout))
    said = CliRunner().invoke(app, ["tensorboard", "a", "--stack", "local"])
    assert "TensorBoard shows the logs of" in said.output
    assert not (checkout / "ran").exists()


def test_invalid_file_name_does_not_hide_logs_of_other_jobs(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    labels = {"vt-stack": "local", "vt-request-id": "x"}
    submitting.submit_with(cloud, "true", "\N{ROCKET}" * 120, labels, output="gs://out/long")
    for job in ("a", "long"):
        write_logs(Home.find().storage / "out" / job)
    said = CliRunner().invoke(app, ["tensorboard", "--stack", "local"]).output
    [line] = [each for each in said.splitlines() if "TensorBoard shows the logs of" in each]
    assert "a-1-" in line
    assert "\N{ROCKET}" in line


def test_output_directory_cannot_leave_the_buckets_of_the_local_cloud(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    write_logs(tmp_path / "elsewhere")
    link = Home.find().storage / "out"
    link.mkdir()
    (link / "link").symlink_to(tmp_path / "elsewhere")
    up = "/".join([".."] * 30)
    labels = {"vt-stack": "local", "vt-request-id": "x"}
    for way in (f"{up}{tmp_path}/elsewhere", "link"):
        id_ = submitting.submit_with(cloud, "true", "x", labels, output=f"gs://out/{way}")
        said = CliRunner().invoke(app, ["tensorboard", id_, "--stack", "local"])
        assert "no TensorBoard logs exist for the chosen jobs" in said.output
