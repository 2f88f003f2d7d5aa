"""What processes get of this machine's variables."""

from __future__ import annotations

import pytest

from localgcp.environment import (
    environment,
    installer_environment,
    server_environment,
    without_real_cloud,
)
from localgcp.home import Home


@pytest.mark.parametrize(
    "name",
    [
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        "PULUMI_ACCESS_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "VERTEX_EMULATOR_HOST",
        "STORAGE_EMULATOR_HOST",
        "BIGQUERY_EMULATOR_HOST",
        "ARTIFACT_REGISTRY_EMULATOR_HOST",
    ],
)
def test_nothing_leads_a_client_past_the_local_cloud(name: str) -> None:
    assert without_real_cloud({name: "elsewhere", "PATH": "/bin"}) == {"PATH": "/bin"}


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


def test_without_an_environment_it_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VT_X", "of this process")
    monkeypatch.setenv("PIP_X", "of this process")
    monkeypatch.setenv("SECRET_X", "of this process")
    assert {"VT_X", "PIP_X"} <= server_environment().keys()
    assert "SECRET_X" not in server_environment()
    assert installer_environment()["PIP_X"] == "of this process"
    assert not {"VT_X", "SECRET_X"} & installer_environment().keys()
    assert server_environment({}) == installer_environment({}) == {}


def test_what_a_user_set_for_gcloud_does_not_lead_past_the_local_cloud() -> None:
    removed = (
        *("CLOUDSDK_AUTH_ACCESS_TOKEN", "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"),
        *("CLOUDSDK_PROXY_ADDRESS", "CLOUDSDK_BILLING_QUOTA_PROJECT", "CLOUDSDK_CORE_ACCOUNT"),
        *("CLOUDSDK_CORE_PROJECT", "CLOUDSDK_ACTIVE_CONFIG_NAME", "CLOUDSDK_CONFIG", "BOTO_CONFIG"),
    )
    kept = {"CLOUDSDK_PYTHON": "x", "PULUMI_HOME": "x", "XGOOGLE_APPLICATION_CREDENTIALS": "x"}
    assert without_real_cloud(dict.fromkeys(removed, "x") | kept) == kept


def test_the_local_clouds_own_variables_win(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_HOME", "of the user")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "of the user")
    monkeypatch.setenv("OTHER", "kept")
    found, own = environment(home, None), home.environment(None)
    assert own.items() <= found.items()
    assert "PULUMI_ACCESS_TOKEN" not in found
    assert found["OTHER"] == "kept"
