"""What leads programs to a home, and who may read its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import (
    Home,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that is not there yet, of a checkout with an environment; PATH is ``/bin``."""
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/bin")
    for name in ("CONTAINERS_REGISTRIES_CONF", "CONTAINERS_CONF"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "repo" / ".venv" / "bin").mkdir(parents=True)
    return Home(tmp_path / "home", tmp_path / "repo")


HINT = "point VT_LOCAL_HOME at a new folder."


def refusal(home: Home) -> tuple[str, str]:
    with pytest.raises(LocalCloudError) as refused:
        home.create()
    return refused.value.message, refused.value.hint


def test_a_folder_that_is_no_home_is_left_alone(home: Home) -> None:
    home.root.mkdir()
    (home.root / "file").touch()
    assert refusal(home) == (
        f"{home.root} is not empty and was not made by `vt local` here.",
        "point VT_LOCAL_HOME at a new folder, or remove it: a checkout may have brought it.",
    )
    assert [path.name for path in home.root.iterdir()] == ["file"]


def test_a_copy_or_a_link_of_a_home_is_none(home: Home, tmp_path: Path) -> None:
    home.create()
    link = Home(tmp_path / "link", home.repo)
    link.root.symlink_to(home.root)
    assert link.is_ours() is False
    assert refusal(link) == (f"{link.root} is a link.", HINT)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in home.root.glob(".vt-*"):
        (copy / path.name).touch()
    assert Home(copy, home.repo).is_ours() is False
    moved = home.root.rename(tmp_path / "moved")
    assert Home(moved, home.repo).is_ours() is True


def test_a_folder_of_another_user_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345678)
    assert refusal(home) == (f"{home.root} belongs to another user.", HINT)
