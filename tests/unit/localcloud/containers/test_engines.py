"""The command lines by which images are pulled, looked at, run and removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from localgcp.containers import host as hosts
from localgcp.containers import registry
from localgcp.containers.engines import Buildah, Docker
from localgcp.containers.host import ContainerHost, find_engine
from localgcp.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(registry, "has_stand_in", lambda: False)
    return Home(tmp_path, tmp_path)


class Machine:
    """Which programs a machine has, and which commands succeed on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs: set[str] = set()
        self.fails: set[str] = set()
        self.asked: list[tuple[list[str], float]] = []
        monkeypatch.setattr(shutil, "which", self.which)
        monkeypatch.setattr(hosts, "succeeds", self.succeeds)
        monkeypatch.setattr(os, "geteuid", lambda: self.user)
        monkeypatch.setattr(os, "getegid", lambda: 7)
        self.user = 1000

    def which(self, name: str) -> str | None:
        return f"/bin/{name}" if name in self.programs else None

    def succeeds(self, command: list[str], seconds: float) -> bool:
        self.asked.append((command, seconds))
        return command[0] not in self.fails


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_buildah_is_first_for_root_and_last_for_others(machine: Machine, home: Home) -> None:
    assert find_engine(home) is None
    machine.programs = {"buildah"}
    assert find_engine(home) == Buildah("/bin/buildah", home.containers)
    assert machine.asked == []
    machine.programs = {"buildah", "podman", "docker"}
    podman = find_engine(home)
    assert isinstance(podman, Docker)
    assert (podman.program, podman.user, podman.name) == ("/bin/podman", "1000:7", "podman")
    assert len(podman.home) == 16
    assert machine.asked == [(["/bin/podman", "info"], 10.0)]
    machine.fails = {"/bin/podman"}
    docker = find_engine(home)
    assert isinstance(docker, Docker)
    assert (docker.program, docker.name, docker.home) == ("/bin/docker", "docker", podman.home)
    machine.fails = {"/bin/podman", "/bin/docker"}
    assert find_engine(home) == Buildah("/bin/buildah", home.containers)
    machine.user = 0
    machine.asked.clear()
    assert find_engine(home) == Buildah("/bin/buildah", home.containers, NAMESPACES)
    assert machine.asked == [([*NAMESPACES, "true"], 10.0)]
    machine.fails = {"unshare"}
    assert find_engine(home) == Buildah("/bin/buildah", home.containers, ())


def test_each_home_has_containers_of_its_own(machine: Machine, tmp_path: Path) -> None:
    machine.programs = {"docker"}
    found = [find_engine(Home(tmp_path / name, tmp_path)) for name in "aab"]
    assert found[0] == found[1] != found[2]


DIGEST = "@sha256:" + "a" * 64
LOCAL = "us-central1-docker.pkg.dev/local-training/training/titanic"


def spec(image: str) -> dict[str, object]:
    return {"workerPoolSpecs": [{}, {"containerSpec": {"imageUri": image}}]}


def test_image_job_is_refused_without_a_registry_or_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, tmp_path)
    assert "no container registry" in (ContainerHost(home, 0).refusal(spec(LOCAL + DIGEST)) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = ContainerHost(home, 5000).refusal(spec(LOCAL + DIGEST))
    assert refusal is not None
    assert "no container engine is installed" in refusal
    assert "make containers" in refusal


def test_an_engine_without_nvidias_runtime_gives_containers_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    home, cdi, runtimes = Home(tmp_path, tmp_path), tmp_path / "cdi", tmp_path / "runtimes"
    without = "or start the local cloud with an empty CUDA_VISIBLE_DEVICES."
    toolkit = "install the NVIDIA Container Toolkit and run `sudo nvidia-ctk"

    def install(name: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n/bin/cat {runtimes}\n")
        (tmp_path / name).chmod(0o755)

    def refusal() -> str:
        return ContainerHost(home, 5000).gpu_refusal([cdi])

    assert refusal() == (
        "this machine gives containers no GPU. Hint: install podman or docker, and the NVIDIA "
        f"Container Toolkit, {without}"
    )
    runtimes.write_text('{"runc": {}}')
    install("docker")
    configure = "runtime configure --runtime=docker`"
    assert refusal() == f"docker gives containers no GPU. Hint: {toolkit} {configure}, {without}"
    runtimes.write_text('{"nvidia": {}, "runc": {}}')
    assert refusal() == ""
    install("podman")
    generate = "cdi generate --output=/etc/cdi/nvidia.yaml`"
    assert refusal() == f"podman gives containers no GPU. Hint: {toolkit} {generate}, {without}"
    cdi.mkdir()
    (cdi / "nvidia.yaml").write_text("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n")
    assert refusal() == ""
