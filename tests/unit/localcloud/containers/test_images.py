"""Images of jobs, and the command lines of the engines that run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.containers import builders
from localgcp.containers.engines import Docker
from localgcp.containers.host import ContainerHost
from localgcp.containers.images import ImageConfig
from localgcp.home import Home

DIGEST = "@sha256:" + "a" * 64
LOCAL = "us-central1-docker.pkg.dev/local-training/training/titanic"


@pytest.mark.parametrize(
    ("command", "args", "runs"),
    [
        ([], [], ["python", "-m", "task", "--help"]),
        ([], ["--x"], ["python", "-m", "task", "--x"]),
        (["sh"], [], ["sh"]),
        (["sh"], ["-c", "true"], ["sh", "-c", "true"]),
    ],
)
def test_a_command_replaces_entrypoint_and_cmd_and_arguments_replace_cmd(command, args, runs):
    config = ImageConfig.parse({"Entrypoint": ["python", "-m", "task"], "Cmd": ["--help"]})
    assert config.command_line(command, args) == runs


def test_an_image_that_says_nothing_runs_nothing():
    assert ImageConfig.parse({"Entrypoint": None}).command_line([], []) == []


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_docker_and_podman_run_as_the_user_and_keep_no_container(name: str):
    engine = Docker(name, "home", "1000:1000", name)
    line = engine.run("c", "ref", ["python", "-m", "x"], {}, {"/gcs": Path("/j/gcs")})
    assert "--rm" in line
    assert line[line.index("--user") + 1] == "1000:1000"
    assert line[line.index("--entrypoint") + 1 :] == ["python", "ref", "-m", "x"]
    assert engine.parse('{"Cmd": ["a"]}').command == ("a",)


def spec(image: str) -> dict[str, object]:
    return {"workerPoolSpecs": [{}, {"containerSpec": {"imageUri": image}}]}


def test_without_a_registry_or_an_engine_an_image_job_is_refused(tmp_path: Path, monkeypatch):
    home = Home(tmp_path, tmp_path)
    assert "no container registry" in (ContainerHost(home, 0).refusal(spec(LOCAL + DIGEST)) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = ContainerHost(home, 5000).refusal(spec(LOCAL + DIGEST))
    assert refusal is not None
    assert "nothing runs containers" in refusal
    assert "make containers" in refusal


def test_other_images_are_not_asked_about(tmp_path: Path):
    assert ContainerHost(Home(tmp_path, tmp_path), 0).refusal(spec("python:3.11")) is None


def test_the_mirror_comes_before_docker_hub():
    text = builders.registries(5000)
    assert 'location = "127.0.0.1:5000/mirror"' in text


def test_files_that_an_installer_needs_are_mounted_read_only():
    assert '"/etc/pip.conf:/etc/pip.conf:ro"' in builders.settings([Path("/etc/pip.conf")])
    assert builders.settings([]) == ""


def test_the_configuration_of_an_index_with_a_password_reaches_no_build(
    tmp_path: Path, monkeypatch
):
    conf, ca = tmp_path / "pip.conf", tmp_path / "ca.pem"
    ca.touch()
    monkeypatch.setattr(builders, "_pip_files", lambda: [conf])
    conf.write_text(f"[global]\ncert = {ca}\n")
    assert builders.readable_files({}) == [ca, conf]
    conf.write_text(f"[global]\ncert = {ca}\nindex-url = https://user:word@example.com/simple\n")
    assert builders.readable_files({}) == []
    assert builders.readable_files({"SSL_CERT_FILE": str(ca)}) == [ca]


def test_settings_are_written_for_a_registry_and_removed_without_one(tmp_path: Path, monkeypatch):
    home = Home(tmp_path, tmp_path)
    monkeypatch.setattr(builders.mirror, "has_stand_in", lambda: True)
    monkeypatch.setattr(builders, "readable_files", lambda: [Path("/etc/pip.conf")])
    builders.write_settings(home, 5000)
    assert home.registries.stat().st_mode & 0o077 == 0
    assert home.builders.exists()
    builders.write_settings(home, 0)
    assert not home.registries.exists()
    assert not home.builders.exists()
