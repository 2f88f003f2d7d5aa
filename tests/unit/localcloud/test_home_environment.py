"""What leads programs to a home, and who may read its files."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import (
    Home,
    ToolEnvironment,
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


def test_without_an_environment_the_running_python_has_the_tools(home: Home) -> None:
    (home.repo / ".venv" / "bin").rmdir()
    path = home.environment(None)["PATH"]
    assert path == f"{home.root}/bin:{Path(sys.executable).parent}:/bin"


def test_builders_get_settings_where_there_are_some_and_the_user_has_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.image_environment(0) == {}
    only = {"ARTIFACT_REGISTRY_EMULATOR_HOST": "127.0.0.1:3"}
    assert home.image_environment(3) == only
    home.create()
    home.registries.touch()
    home.builders.touch()
    both = {
        **only,
        "CONTAINERS_REGISTRIES_CONF": str(home.registries),
        "CONTAINERS_CONF": str(home.builders),
    }
    assert home.image_environment(3) == both
    monkeypatch.setenv("CONTAINERS_CONF", "/of/the/user")
    del both["CONTAINERS_CONF"]
    assert home.image_environment(3) == both
    # Of this home, in a shell of its own: it is said again.
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(home.registries))
    assert home.image_environment(3) == both


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


def test_a_tool_has_an_environment_for_its_pins_and_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    pins = tmp_path / "pins.txt"
    pins.write_bytes(b"a==1")
    tool = ToolEnvironment("tool", pins)
    digest = hashlib.sha256(b"a==1").hexdigest()[:16]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert tool.folder == tmp_path / "cache" / f"tool-{digest}-{version}"
    assert tool.marker == tool.folder / ".installed"
    assert tool.python is None
    tool.folder.mkdir(parents=True)
    tool.marker.touch()
    assert tool.python == tool.folder / "bin" / "python"
    pins.write_bytes(b"a==2")
    assert tool.python is None


def test_a_checkout_is_found_from_below_and_its_home_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    below = tmp_path / "repo" / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "repo" / "Pulumi.yaml").touch()
    repo = (tmp_path / "repo").resolve()
    assert Home.find({}, below) == Home(repo / ".vt-local", repo)
    named = Home.find({"VT_LOCAL_HOME": str(tmp_path / "x" / ".." / "y")}, below)
    assert named == Home(tmp_path / "y", repo)
