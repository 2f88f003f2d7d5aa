"""Programs for containers are found, or a message says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

import containers


def program(folder: Path, name: str, code: int = 0) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\nexit {code}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(containers, "provide_base", lambda _builder: 0)
    return tmp_path


@pytest.mark.parametrize("builder", ["buildah", "podman", "docker"])
def test_any_builder_and_registry_will_do(
    path: Path, builder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program(path, builder)
    program(path, "registry")
    assert containers.main() == 0
    assert f"containers: builder {path}/{builder}" in capsys.readouterr().out


def test_without_programs_and_without_apt_a_hint_says_what_to_install(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not containers.can_install()
    assert containers.main() == 1
    assert "apt-get install buildah docker-registry" in capsys.readouterr().err


def test_only_what_is_missing_is_installed(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "buildah")
    (path / "apt-get").write_text(
        f'#!/bin/sh\n[ "$1" = update ] || {{ echo "$@" > "{path}/asked"; '
        f'echo > "{path}/docker-registry"; /bin/chmod +x "{path}/docker-registry"; }}\n'
    )
    (path / "apt-get").chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert containers.main() == 0
    asked = (path / "asked").read_text().split()
    assert "docker-registry" in asked
    assert "buildah" not in asked
    assert f"containers: registry {path}/docker-registry" in capsys.readouterr().out


def test_a_failed_installation_is_reported(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "apt-get", code=100)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert containers.main() == 1
    assert "apt-get update -qq failed" in capsys.readouterr().err
