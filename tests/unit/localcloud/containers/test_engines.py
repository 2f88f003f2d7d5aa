"""The command lines by which images are pulled, looked at, run and removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from localgcp.containers import host as hosts
from localgcp.containers import mirror
from localgcp.containers.engines import Buildah, Docker
from localgcp.containers.host import ContainerHost, find_engine
from localgcp.containers.images import ImageConfig
from localgcp.home import Home

BUILDAH = Buildah("/bin/buildah", Path("/h"), ("unshare", "--mount"))
PLACES = ["unshare", "--mount", "/bin/buildah", "--root", "/h/storage", "--runroot", "/h/run"]
ENV = {"A": "b c", "B": ""}
VOLUMES = {"/gcs": Path("/j/gcs"), "/x": Path("/y")}


def test_buildah_keeps_images_and_containers_in_its_folder() -> None:
    prepared = ["from", "--tls-verify=false", "--pull", "--name", "c", "ref"]
    assert BUILDAH.prepare("c", "ref") == [*PLACES, *prepared]
    assert BUILDAH.inspect("c", "ref") == [*PLACES, "inspect", "c"]
    assert BUILDAH.remove("c") == [*PLACES, "rm", "c"]
    assert BUILDAH.containers() == [
        *(*PLACES, "containers", "--noheading", "--format", "{{.ContainerName}}")
    ]
    assert BUILDAH.run("c", "ref", ["python", "-m", "x"], ENV, VOLUMES) == [
        *PLACES,
        *("run", "--isolation", "chroot", "--network", "host"),
        *("--volume", "/j/gcs:/gcs", "--volume", "/y:/x"),
        *("--env", "A=b c", "--env", "B="),
        *("c", "--", "python", "-m", "x"),
    ]
    assert Buildah("buildah", Path("/h")).remove("c")[0] == "buildah"
    assert (BUILDAH.name, Docker("d", "h", "1:1").name) == ("buildah", "docker")
    assert BUILDAH.parse('{"OCIv1": {}}') == ImageConfig()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(mirror, "has_stand_in", lambda: False)
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


class Script(Docker):
    """docker as a shell script that notes what it was called with."""

    def containers(self) -> list[str]:
        return ["sh", "-c", "echo vt-1; echo vt-2"] if self.name == "docker" else ["false"]

    def remove(self, container: str) -> list[str]:
        """Works at the try that ``user`` has the number of."""
        tried = f"{self.home}/tried"
        works = f"[ $(wc -l < {tried}) -ge {self.user} ] && echo {container}"
        return ["sh", "-c", f"echo {container} >> {tried}; {works}"]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were slept."""
    found: list[float] = []
    monkeypatch.setattr(hosts, "time", SimpleNamespace(sleep=found.append))
    return found


def test_containers_of_a_killed_server_are_removed(
    home: Home,
    waited: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(hosts, "find_engine", lambda _home: Script("x", str(home.root), "1"))
    host = ContainerHost(home, 0)
    host.recover()
    assert not (home.root / "tried").exists()
    home.containers.mkdir()
    host.recover()
    assert (home.root / "tried").read_text() == "vt-1\nvt-2\n"
    assert waited == [0.0, 0.0]
    assert capsys.readouterr().out == (
        "removing container vt-1, left behind by a killed server\n"
        "removing container vt-2, left behind by a killed server\n"
    )


def test_container_of_a_silent_engine_is_reported_as_not_removed(
    home: Home,
    waited: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine = Script("x", str(home.root), "5", name="silent")
    monkeypatch.setattr(hosts, "find_engine", lambda _home: engine)
    home.containers.mkdir()
    host = ContainerHost(home, 0)
    host.recover()
    assert capsys.readouterr().out == (
        "the engine does not list containers: those of a killed server would stay\n"
    )
    host.remove("vt-3")
    assert waited == [0.0, 0.2, 1.0, 5.0]
    told = "container vt-3 cannot be removed; the next start tries again\n"
    assert capsys.readouterr().out == told


def test_settings_of_builders_follow_the_registry(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[Home, int]] = []
    monkeypatch.setattr(hosts, "write_settings", lambda *given: written.append(given))
    host = ContainerHost(home, 5000)
    host.start()
    host.wait_ready()
    assert written == [(home, 5000)]
    host.reconcile(5000)
    assert written == [(home, 5000)]
    host.reconcile(5001)
    assert (written[1:], host.port) == ([(home, 5001)], 5001)
    monkeypatch.setattr(mirror, "has_stand_in", lambda: True)
    for _ in range(2):
        host.reconcile(5001)
    assert written[2:] == [(home, 5001)]


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
    assert "nothing runs containers" in refusal
    assert "make containers" in refusal
