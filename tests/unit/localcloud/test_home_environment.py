"""What leads programs to a home, and who may read its files."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest

from localgcp import home as homes
from localgcp import home_identity
from localgcp.clients import cloud_sdk
from localgcp.errors import LocalCloudError
from localgcp.home import (
    Home,
    Ports,
    ToolEnvironment,
    make_private,
    open_private,
    path_without,
    touch_private,
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


def pulumi(home: Home) -> dict[str, str]:
    tools = home.repo / ".venv" / "bin"
    return {
        "VT_LOCAL_HOME": str(home.root),
        "PULUMI_BACKEND_URL": f"file://{home.root}/pulumi",
        "PULUMI_HOME": f"{home.root}/pulumi-home",
        "PULUMI_CONFIG_PASSPHRASE": "local",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PATH": f"{home.root}/bin:{tools}:/bin",
    }


def test_a_preview_is_led_to_the_local_state_alone(home: Home) -> None:
    assert home.environment(None) == pulumi(home)


def test_clients_are_led_to_the_services_by_their_ports(home: Home) -> None:
    assert home.environment(Ports(1, 2, 3)) == {
        **pulumi(home),
        "VERTEX_EMULATOR_HOST": "127.0.0.1:1",
        "BIGQUERY_EMULATOR_HOST": "http://127.0.0.1:1",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:2",
        "ARTIFACT_REGISTRY_EMULATOR_HOST": "127.0.0.1:3",
        **cloud_sdk.environment(home.root / "cloud-sdk", 2, 1),
    }
    assert "ARTIFACT_REGISTRY_EMULATOR_HOST" not in home.environment(Ports(1, 2))


def test_without_an_environment_the_running_python_has_the_tools(home: Home) -> None:
    (home.repo / ".venv" / "bin").rmdir()
    path = home.environment(None)["PATH"]
    assert path == f"{home.root}/bin:{Path(sys.executable).parent}:/bin"


def test_path_does_not_grow_in_shells_of_shells(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = home.environment(None)["PATH"]
    monkeypatch.setenv("PATH", once)
    assert home.environment(None)["PATH"] == once
    monkeypatch.setenv("PATH", "/a::/b:/c")
    assert path_without(Path("/b")) == "/a:/c"
    monkeypatch.delenv("PATH")
    assert path_without() == os.defpath


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


def test_a_home_is_made_for_its_user_alone_and_marked(home: Home) -> None:
    assert home.is_ours() is False
    home.create()
    home.create()
    assert home.is_ours() is True
    names = sorted(path.name for path in home.root.iterdir() if path.is_dir())
    assert names == ["bin", "jobs", "pulumi", "run", "sockets", "stacks", "storage"]
    for path in (home.root, *home.root.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    [marker] = home.root.glob(".vt-local-home-*")
    assert len(marker.name) == len(".vt-local-home-") + 32
    assert stat.S_IMODE(marker.stat().st_mode) == 0o600


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


def test_a_folder_that_cannot_be_made_is_told(home: Home, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = Home(tmp_path / "file" / "home", home.repo)
    assert refusal(below) == (f"{below.root} cannot be made or written: Not a directory.", HINT)


def test_the_secret_of_the_marks_is_made_once(tmp_path: Path) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    home_identity.mark(root, cache)
    key = (cache / "local-home.key").read_bytes()
    assert len(key) == 32
    assert stat.S_IMODE((cache / "local-home.key").stat().st_mode) == 0o600
    home_identity.mark(root, cache)
    assert [path.name for path in cache.iterdir()] == ["local-home.key"]
    assert (cache / "local-home.key").read_bytes() == key
    assert home_identity.is_marked(root, cache)
    assert not home_identity.is_marked(root, tmp_path / "other")
    assert not home_identity.is_marked(tmp_path / "none", cache)


def test_an_empty_folder_and_none_may_become_a_home(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    home_identity.ensure_usable(tmp_path / "empty", tmp_path / "cache")
    home_identity.ensure_usable(tmp_path / "none", tmp_path / "cache")


def test_a_file_is_made_for_this_user_alone_and_no_link_is_followed(tmp_path: Path) -> None:
    with open_private(tmp_path / "a", "w") as file:
        file.write("x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(tmp_path / "link", "w")
    touch_private(tmp_path / "b")
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    touch_private(tmp_path / "none" / "c")


def test_others_lose_their_rights_to_a_tree_but_for_what_is_kept(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for folder in (tree / "a" / "b", tree / "kept" / "c"):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        (folder / "file").touch()
        (folder / "file").chmod(0o751)
    outside = tmp_path / "outside"
    outside.touch()
    outside.chmod(0o644)
    (tree / "link").symlink_to(outside)
    tree.chmod(0o777)
    make_private(tree, [tree / "kept"])

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert [mode(path) for path in (tree, tree / "a" / "b", tree / "a" / "b" / "file")] == [
        0o700
    ] * 3
    assert (mode(tree / "kept" / "c"), mode(tree / "kept" / "c" / "file")) == (0o755, 0o751)
    assert mode(outside) == 0o644
    make_private(tmp_path / "none")


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


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"VT_CACHE_DIR": "/own"}, "/own"),
        ({"VT_CACHE_DIR": "~/own"}, "/user/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/vertex-training"),
        ({"XDG_CACHE_HOME": "relative"}, "/user/.cache/vertex-training"),
        ({}, "/user/.cache/vertex-training"),
    ],
)
def test_the_cache_is_the_users(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], place: str
) -> None:
    monkeypatch.setenv("HOME", "/user")
    assert homes.cache_dir(env) == Path(place)


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
