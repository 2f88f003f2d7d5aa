"""Settings of builders, and the stand-in for base images."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.containers import host, registry
from localgcp.errors import LocalCloudError
from localgcp.home import Home


def test_certificates_that_pip_or_a_variable_names_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("conf", "broken", "secret", "one.pem", "two.pem", "three.pem")
    conf, broken, secret, one, two, three = (tmp_path / name for name in names)
    for file in (one, two, three):
        file.touch()
    conf.write_text(f"[global]\ncert = {one}\n[install]\nindex-url = https://example.com\n")
    broken.write_text("no section\n")
    secret.write_text(f"[global]\nindex-url = https://u:p@example.com\ncert = {three}\n")
    monkeypatch.setattr(host, "_pip_files", lambda: [conf, broken, secret])
    env = {"CURL_CA_BUNDLE": str(two), "PIP_CERT": str(tmp_path / "none"), "OTHER": str(three)}
    assert host.readable_files(env) == sorted([broken, conf, one, two])
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        assert three in host.readable_files({name: str(three)})


def test_settings_are_written_for_a_registry_and_removed_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, tmp_path)
    monkeypatch.setattr(host.registry, "has_stand_in", lambda: True)
    monkeypatch.setattr(host, "readable_files", lambda: [Path("/etc/pip.conf")])
    host.write_settings(home, 5000)
    assert home.registries.stat().st_mode & 0o077 == 0
    assert home.builders.exists()
    host.write_settings(home, 0)
    assert not home.registries.exists()
    assert not home.builders.exists()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_stand_in_is_kept_in_the_cache_of_the_user(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = registry.stand_in_folder()
    assert folder.parent == cache / "base-images"
    assert len(folder.name) == 16
    assert registry.has_stand_in() is False
    folder.mkdir(parents=True)
    (folder / "index.json").touch()
    assert registry.has_stand_in() is True

    def nowhere() -> Path:
        raise LocalCloudError("no home")

    monkeypatch.setattr(registry, "cache_dir", nowhere)
    assert registry.has_stand_in() is False


def test_stand_in_that_cannot_be_made_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(LocalCloudError) as failed:
        registry.make_stand_in(lambda _: None)
    assert str(failed.value) == "cannot run mmdebstrap: No such file or directory."
    assert list((cache / "base-images").iterdir()) == [
        registry.stand_in_folder().with_suffix(".lock")
    ]
