"""Which stack a command means, and what it says of a file that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp import lifecycle
from localgcp.home import Home, Ports, environment
from localgcp.home.servers import ServerInfo
from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.engine.stacks import PreviewTarget

CONFIG = "config: {gcp:project: acme-ml, gcp:region: us-central1}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with stacks `dev` and `local`, and no pulumi."""
    (tmp_path / "Pulumi.yaml").write_text("name: training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(CONFIG)
    (tmp_path / "Pulumi.local.yaml").write_text(CONFIG.replace("acme-ml", "local-ml"))
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_project_there_is_no_stack(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        stacks.find("dev", tmp_path)
    assert (
        str(refused.value)
        == "no Pulumi.yaml in this folder or above. Hint: change to the folder of a Pulumi project."
    )


def test_a_local_stack_is_reached_in_the_local_cloud(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = ServerInfo(4242, 1001, 1002, "now", 1003)
    monkeypatch.setattr(lifecycle, "start", lambda _home, log: log("starts") or info)
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("VT_LOCAL_HOME", str(root / "home"))
    local, said = stacks.find("local"), list[str]()
    wanted = environment.environment(Home.find(cwd=root), Ports(1001, 1002, 1003))
    assert wanted["VERTEX_EMULATOR_HOST"] == "127.0.0.1:1001"
    assert local.environment(said.append) == wanted
    assert local.deployment_environment(said.append) == wanted
    assert local.running_environment() == wanted
    assert said == ["starts", "starts"]
    assert local.local_backend() == f"file://{root}/home/pulumi"
    source = "Previewed against the local stack's state"
    without = environment.environment(Home.find(cwd=root), None)
    # a refresh reads what the cloud has, so it is started; else its records are read if it runs
    for refresh in (True, False):
        found = local.preview_target(offline=False, refresh=refresh)
        assert found == PreviewTarget(wanted, source)
    for name in ("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST"):  # in `vt local shell`
        monkeypatch.setenv(name, "127.0.0.1:1")
        assert name not in without
    assert local.preview_target(offline=True) == PreviewTarget(without, source)
    monkeypatch.setattr(lifecycle, "running", lambda _: None)
    assert local.preview_target(offline=False) == PreviewTarget(without, source)


def test_a_deployment_needs_a_named_state_and_takes_the_tools_of_this_python(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BACKEND, raising=False)
    found = stacks.find("dev", root)
    with pytest.raises(CommandError, match="PULUMI_BACKEND_URL is not set"):
        found.deployment_environment(print)
    monkeypatch.setenv(BACKEND, "gs://acme-state")
    monkeypatch.setenv("PATH", "/bin")
    path = found.deployment_environment(print)["PATH"]
    assert path == f"{Path(stacks.sys.executable).parent}:/bin"
