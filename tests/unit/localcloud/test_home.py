"""The folder of a local cloud: where its files are, and which folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp import home
from localgcp.environment import (
    environment,
    installer_environment,
    server_environment,
)
from localgcp.home import Home


def test_the_files_of_a_home_keep_their_places_from_version_to_version() -> None:
    home = Home(Path("/home"), Path("/checkout"))
    same = "storage registry batch bigquery serving notifications wheels containers builds jobs"
    same = f"{same} pulumi stacks bin secrets sockets".split()
    dashed = ["pulumi_home", "nearest_images", "cloud_sdk"]
    other = "database=cloud.sqlite faults=faults.sqlite storage_log=storage.log children=run"
    other = f"{other} registry_log=registry.log registries=registries.conf server_lock=server.lock"
    other = f"{other} builders=containers.conf server_file=server.json server_log=server.log"
    names = dict(pair.split("=") for pair in f"{other} start_lock=start.lock".split())
    names |= {name: name for name in same} | {name: name.replace("_", "-") for name in dashed}
    properties = {name for name, value in vars(Home).items() if isinstance(value, property)}
    assert {name: getattr(home, name) for name in properties} == {
        name: Path("/home") / place for name, place in names.items()
    }


def test_elsewhere_it_serves_the_checkout_of_this_program_else_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mine"
    checkout = Path(__file__).resolve().parents[3]

    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, checkout)
    monkeypatch.setattr(home, "__file__", str(tmp_path / "installed" / "localgcp" / "home.py"))
    assert Home.find({"VT_LOCAL_HOME": str(root)}, tmp_path) == Home(root, tmp_path)


#: What a user's shell may hold, and who gets it beside the programs of the local shell:
#: the server, which is the parent of every job, and installers of packages.
VARIABLES = {
    "PATH": "si", "HOME": "si", "USER": "si", "LOGNAME": "si", "TMPDIR": "si",
    "LANG": "si", "LANGUAGE": "si", "TZ": "si", "LC_ALL": "si", "XDG_CACHE_HOME": "si",
    "SSL_CERT_FILE": "si", "SSL_CERT_DIR": "si", "REQUESTS_CA_BUNDLE": "si",
    "CURL_CA_BUNDLE": "si", "NETRC": "si",
    "HTTP_PROXY": "si", "https_proxy": "si", "ALL_PROXY": "si", "no_proxy": "si",
    "PIP_INDEX_URL": "si", "UV_INDEX_URL": "si",
    "VT_LOCAL_HOME": "s", "PYTHONPATH": "s", "GRPC_VERBOSITY": "s", "LD_LIBRARY_PATH": "s",
    "DYLD_LIBRARY_PATH": "s",
    "UV_PUBLISH_TOKEN": "", "AWS_SECRET_ACCESS_KEY": "", "GH_TOKEN": "", "SSH_AUTH_SOCK": "",
    "LD_PRELOAD": "", "EDITOR": "", "path": "", "MY_VT_X": "", "X_PROXY": "",
}  # fmt: skip


def test_the_server_and_installers_get_listed_variables_and_nothing_else() -> None:
    env = dict.fromkeys(VARIABLES, "x")
    for letter, made in (("s", server_environment), ("i", installer_environment)):
        wanted = [name for name, who in VARIABLES.items() if letter in who]
        assert list(made(env)) == wanted


def test_the_local_clouds_own_variables_win(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_HOME", "of the user")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "of the user")
    monkeypatch.setenv("OTHER", "kept")
    found, own = environment(home, None), home.environment(None)
    assert own.items() <= found.items()
    assert "PULUMI_ACCESS_TOKEN" not in found
    assert found["OTHER"] == "kept"
