"""``vt setup`` of an installed package: what it takes for complete, and where it refuses."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_training_cli import setup
from vertex_training_cli.setup import install_pulumi, installed_pulumi
from vertex_training_cli.toolchain import layout, policy_env, releases
from vertex_training_cli.toolchain.console import SetupError
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.pulumi_cli import Pulumi

FOUND = Pulumi("path", "3.259.0", "/usr/bin/pulumi, official", "official")


@pytest.fixture
def environment(checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A virtual environment with the package in a folder with a space; no source works.

    The policy pack needs no packages here, so that its environment is made without a network.
    """
    installed_in = tmp_path / "site packages"
    shutil.copytree(checkout.root / "cli", installed_in)
    (installed_in / "vertex_training").mkdir()
    monkeypatch.setenv("VT_OFFLINE_ENGINE", str(checkout.offline_engine))
    found = dataclasses.replace(
        checkout, root=installed_in, environment=tmp_path / "an environment"
    )
    make = [sys.executable, "-m", "venv", "--without-pip", str(found.environment)]
    subprocess.run(make, check=True)
    (found.bin / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    monkeypatch.setattr(setup, "ensure_pulumi", lambda *_: FOUND)
    return found


def put_commands(place: Layout) -> None:
    for name in ("pulumi", *PLUGINS):
        (place.bin / name).write_text("#!/bin/sh\n")
        (place.bin / name).chmod(0o755)


@pytest.mark.parametrize(
    "what",
    ["command", "source", "pin", "record", "shape", "policies", "package", "pin of policies"],
)
def test_what_changed_is_installed_anew(environment: Layout, what: str) -> None:
    put_commands(environment)
    install_pulumi(environment, "auto")
    if what == "command":
        (environment.bin / "pulumi-language-python").unlink()
    if what == "pin":
        (environment.offline_engine / "go.sum").write_text("changed\n")
    if what == "policies":
        shutil.rmtree(environment.policy_venv)
    if what == "package":
        link = link_of(environment)
        link.unlink()
        link.symlink_to(environment.root / "elsewhere")
    if what == "pin of policies":
        environment.policy_requirements.write_text("# changed\n")
    if what == "record":
        environment.stamp.write_text('{"digest": ')
    if what == "shape":
        environment.stamp.write_text("[]")
    source = "path" if what == "source" else "auto"
    assert installed_pulumi(environment, source) is None
    put_commands(environment)
    install_pulumi(environment, source)
    assert installed_pulumi(environment, source) == FOUND
    assert (environment.offline_engine / "go.mod").exists()  # a link is not cleared through


def link_of(place: Layout) -> Path:
    """What policies import this package by."""
    [folder] = place.policy_venv.glob("lib/python*/site-packages")
    return folder / "vertex_training"


def test_a_pin_that_cannot_be_had_is_named_and_nothing_counts_as_installed(
    environment: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_commands(environment)
    pin = f"no-such==1 --hash=sha256:{'0' * 64}\n"
    environment.policy_requirements.write_text(pin)
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(SetupError, match=r"(?s)the policy pack's packages failed.*no-such"):
        install_pulumi(environment, "auto")
    assert installed_pulumi(environment, "auto") is None


def test_the_first_uv_that_is_new_enough_is_taken(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(file: Path, said: str) -> None:
        file.write_text(f"#!/bin/sh\n{said}\n")
        file.chmod(0o755)

    own, other = checkout.bin / "uv", tmp_path / "path" / "uv"
    other.parent.mkdir()
    monkeypatch.setenv("PATH", str(other.parent))
    assert policy_env.find_uv(checkout) is None
    for said in ("echo uv 0.4.9", "exit 1"):
        put(other, said)
        assert policy_env.find_uv(checkout) is None
    put(other, "echo uv 0.5.0")
    assert policy_env.find_uv(checkout) == other
    for said, found in (("exit 1", other), ("echo uv 0.4.9", other), ("echo uv 0.5.0", own)):
        put(own, said)
        assert policy_env.find_uv(checkout) == found


def test_a_python_of_the_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    with pytest.raises(SetupError, match="is in no virtual environment"):
        Layout.of_this_environment()


def test_an_environment_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(layout.os, "access", lambda *_: False)
    with pytest.raises(SetupError, match="cannot write"):
        Layout.of_this_environment()


def test_an_unknown_source_is_refused(environment: Layout) -> None:
    with pytest.raises(SetupError, match="VT_PULUMI_SOURCE is 'somewhere'"):
        install_pulumi(environment, "somewhere")


def test_a_repository_pins_archives_of_its_own(environment: Layout, tmp_path: Path) -> None:
    """An installed package cannot be edited, and deployments download only what is pinned."""
    file = tmp_path / "releases.sha256"
    file.write_text(f"# ours\n{'A' * 64}  pulumi-resource-gcp-v1.0.0-linux-amd64.tar.gz\n")
    own = dataclasses.replace(environment, own_releases=file)
    archive = "pulumi-resource-gcp-v1.0.0-linux-amd64.tar.gz"
    assert releases.pinned_sha256(own, archive) == "a" * 64
    assert releases.pinned_sha256(environment, archive) is None
    assert releases.pinned_sha256(own, "another.tar.gz") is None
    before = own.inputs_digest("auto")
    file.write_text("")
    assert own.inputs_digest("auto") != before


def test_a_deployment_is_not_served_what_a_laptop_installed(environment: Layout) -> None:
    put_commands(environment)
    install_pulumi(environment, "auto")
    deployment = dataclasses.replace(environment, deploy=True)
    assert installed_pulumi(deployment, "auto") is None
    with pytest.raises(SetupError, match=r"(?s)has no line for .*--releases FILE"):
        install_pulumi(deployment, "auto")


def test_a_file_of_archives_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot read"):
        Layout.of_this_environment(own_releases=tmp_path / "none")
