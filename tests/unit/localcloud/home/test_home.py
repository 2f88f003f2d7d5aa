"""The folder of a local cloud: where its files are, and which folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home, layout
from localgcp.home.environment import (
    environment,
)


def test_the_files_of_a_home_keep_their_places_from_version_to_version() -> None:
    home = Home(Path("/home"), Path("/checkout"))
    same = "storage registry batch bigquery serving notifications wheels containers builds jobs"
    same = f"{same} pulumi stacks bin secrets sockets".split()
    dashed = ["pulumi_home", "nearest_images", "cloud_sdk", "gpu_shortage"]
    other = "database=cloud.sqlite faults=faults.sqlite storage_log=storage.log children=run"
    other = f"{other} registry_log=registry.log registries=registries.conf server_lock=server.lock"
    other = f"{other} builders=containers.conf server_file=server.json server_log=server.log"
    names = dict(pair.split("=") for pair in f"{other} start_lock=start.lock".split())
    names |= {name: name for name in same} | {name: name.replace("_", "-") for name in dashed}
    places = {name: getattr(home, name) for name in dir(home) if not name.startswith("_")}
    del places["root"], places["repo"]
    assert {name: place for name, place in places.items() if isinstance(place, Path)} == {
        name: Path("/home") / place for name, place in names.items()
    }


def test_elsewhere_it_serves_the_checkout_of_this_program_else_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mine"
    checkout = Path(__file__).resolve().parents[4]

    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, checkout)
    installed = tmp_path / "installed" / "localgcp" / "home" / "layout.py"
    monkeypatch.setattr(layout, "__file__", str(installed))
    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, tmp_path)


def test_the_local_clouds_own_variables_win(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_HOME", "of the user")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "of the user")
    monkeypatch.setenv("OTHER", "kept")
    found, own = environment(home, None), home.environment(None)
    assert own.items() <= found.items()
    assert "PULUMI_ACCESS_TOKEN" not in found
    assert found["OTHER"] == "kept"


HINT = "point VT_LOCAL_HOME at a new folder."


@pytest.fixture
def new_home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", tmp_path)


def refusal(home: Home) -> tuple[str, str]:
    with pytest.raises(LocalCloudError) as refused:
        home.create()
    return refused.value.message, refused.value.hint


def test_a_folder_that_is_no_home_is_left_alone(new_home: Home) -> None:
    new_home.root.mkdir()
    (new_home.root / "file").touch()
    assert refusal(new_home) == (
        f"{new_home.root} is not empty, and `vt local` did not create it on this machine.",
        "point VT_LOCAL_HOME at a new folder, or remove the folder: it may be part of a checkout.",
    )
    assert [path.name for path in new_home.root.iterdir()] == ["file"]


def test_a_copy_or_a_link_of_a_home_is_none(new_home: Home, tmp_path: Path) -> None:
    new_home.create()
    link = Home(tmp_path / "link", new_home.repo)
    link.root.symlink_to(new_home.root)
    assert link.is_ours() is False
    assert refusal(link) == (f"{link.root} is a link.", HINT)
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in new_home.root.glob(".vt-*"):
        (copy / path.name).touch()
    assert Home(copy, new_home.repo).is_ours() is False
    moved = new_home.root.rename(tmp_path / "moved")
    assert Home(moved, new_home.repo).is_ours() is True
