"""What processes get of this machine's variables."""

from __future__ import annotations

import pytest

from localgcp.environment import (
    environment,
    installer_environment,
    server_environment,
)
from localgcp.home import Home

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
