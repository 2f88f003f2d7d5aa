"""The folder of a local cloud: where its files are, and which folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp import home
from localgcp.errors import LocalCloudError
from localgcp.home import Home


def test_the_files_of_a_home_keep_their_places_from_version_to_version() -> None:
    home = Home(Path("/home"), Path("/checkout"))
    names = {
        "database": "cloud.sqlite",
        "faults": "faults.sqlite",
        "storage": "storage",
        "storage_log": "storage.log",
        "registry": "registry",
        "registry_log": "registry.log",
        "registries": "registries.conf",
        "batch": "batch",
        "bigquery": "bigquery",
        "serving": "serving",
        "notifications": "notifications",
        "wheels": "wheels",
        "nearest_images": "nearest-images",
        "builders": "containers.conf",
        "cloud_sdk": "cloud-sdk",
        "containers": "containers",
        "builds": "builds",
        "jobs": "jobs",
        "server_file": "server.json",
        "server_log": "server.log",
        "server_lock": "server.lock",
        "start_lock": "start.lock",
        "children": "run",
        "pulumi": "pulumi",
        "pulumi_home": "pulumi-home",
        "stacks": "stacks",
        "bin": "bin",
        "secrets": "secrets",
        "sockets": "sockets",
    }

    properties = {name for name, value in vars(Home).items() if isinstance(value, property)}
    assert {name: getattr(home, name) for name in properties} == {
        name: Path("/home") / place for name, place in names.items()
    }


@pytest.mark.parametrize(
    ("named", "root"),
    [
        (None, "checkout/.vt-local"),
        ("", "checkout/.vt-local"),
        ("{tmp}/other/../mine", "mine"),
    ],
)
def test_a_home_is_the_folder_of_the_variable_else_one_in_the_checkout(
    tmp_path: Path, named: str | None, root: str
) -> None:
    below = tmp_path / "checkout" / "jobs"
    below.mkdir(parents=True)
    (tmp_path / "checkout" / "Pulumi.yaml").write_text("name: demo\n")
    env = {} if named is None else {"VT_LOCAL_HOME": named.format(tmp=tmp_path)}

    home = Home.find(env, below)

    assert home == Home(tmp_path / root, tmp_path / "checkout")


def test_elsewhere_it_serves_the_checkout_of_this_program_else_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mine"
    checkout = Path(__file__).resolve().parents[3]

    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, checkout)
    monkeypatch.setattr(home, "__file__", str(tmp_path / "installed" / "localgcp" / "home.py"))
    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, tmp_path)


def test_a_folder_of_others_is_neither_taken_nor_marked(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    home = Home(tmp_path, tmp_path)

    with pytest.raises(LocalCloudError, match="is not empty and was not made by"):
        home.create()

    assert not home.is_ours()
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_home_that_exists_is_completed(tmp_path: Path) -> None:
    home = Home(tmp_path / "above" / "home", tmp_path)
    home.create()
    (home.jobs / "1").mkdir()
    home.stacks.rmdir()

    home.create()

    assert home.is_ours()
    assert home.stacks.is_dir()
    assert (home.jobs / "1").is_dir()
