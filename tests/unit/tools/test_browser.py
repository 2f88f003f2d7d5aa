"""A browser is found, or a message says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

import browser


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    return tmp_path


def test_without_a_browser_and_without_apt_a_hint_says_what_to_install(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not browser.can_install()
    assert browser.main() == 1
    assert "apt-get install chromium" in capsys.readouterr().err


def test_a_failed_installation_is_reported(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (path / "apt-get").chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert browser.main() == 1
    assert "apt-get update -qq failed" in capsys.readouterr().err


def test_what_is_installed_is_found(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "apt-get").write_text(
        f'#!/bin/sh\n[ "$1" = update ] || {{ echo > "{path}/chromium"; '
        f'/bin/chmod +x "{path}/chromium"; }}\n'
    )
    (path / "apt-get").chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert browser.main() == 0
    assert f"browser: {path}/chromium" in capsys.readouterr().out
