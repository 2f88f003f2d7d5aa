"""Jobs with images on machines without an engine, and settings of builders."""

from __future__ import annotations

from pathlib import Path

from localgcp.containers import builders
from localgcp.containers.host import ContainerHost
from localgcp.home import Home

DIGEST = "@sha256:" + "a" * 64
LOCAL = "us-central1-docker.pkg.dev/local-training/training/titanic"


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
