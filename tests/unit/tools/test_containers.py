"""Programs for containers and a browser are found, or a message says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

import system_programs


def program(folder: Path, name: str, code: int = 0) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\nexit {code}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(system_programs.VARIABLE, raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(system_programs, "provide_base", lambda _builder: 0)
    return tmp_path


@pytest.mark.parametrize("builder", ["buildah", "podman", "docker"])
def test_any_builder_and_registry_will_do(
    path: Path, builder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program(path, builder)
    program(path, "registry")
    assert system_programs.main("containers") == 0
    assert f"containers: builder {path}/{builder}" in capsys.readouterr().out


TOOLS = pytest.mark.parametrize(
    ("tool", "packages", "installed", "shown"),
    [
        ("containers", "buildah docker-registry", "docker-registry", "containers: registry"),
        ("browser", "chromium", "chromium", "browser: browser"),
    ],
)


@TOOLS
def test_missing_program_is_installed_or_named(
    path: Path, capsys: pytest.CaptureFixture[str], tool: str, packages: str, installed: str,
    shown: str,
) -> None:  # fmt: skip
    program(path, "buildah")
    assert system_programs.main(tool) == 1
    assert f"apt-get install {packages}" in capsys.readouterr().err
    apt = program(path, "apt-get", code=100)
    assert system_programs.main(tool) == 1
    assert "apt-get update -qq failed" in capsys.readouterr().err
    apt.write_text(
        f'#!/bin/sh\n[ "$1" = update ] || {{ echo "$@" > "{path}/asked"; '
        f'echo > "{path}/{installed}"; /bin/chmod +x "{path}/{installed}"; }}\n'
    )
    assert system_programs.main(tool) == 0
    asked = (path / "asked").read_text().split()
    assert installed in asked
    assert "buildah" not in asked
    assert f"{shown} {path}/{installed}" in capsys.readouterr().out
