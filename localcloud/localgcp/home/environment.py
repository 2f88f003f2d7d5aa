"""Environment variables of local programs, of the server and of package installers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from localgcp.clients import cloud_sdk
from localgcp.home import Home, Ports
from localgcp.system import gpus

# Variables that point pulumi or a client to another cloud or another home.
_REMOVED: Final = (
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_ACCESS_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    *("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST"),
    "ARTIFACT_REGISTRY_EMULATOR_HOST",
)
#: Variables for user, files and language.
_BASIC: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "TZ")
#: Variables for access to a package index. Proxies may also be in lower case.
_NETWORK: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_SERVER_PREFIXES: Final = ("VT_", "PYTHON", "GRPC_", "LD_LIBRARY_PATH", "DYLD_", gpus.VISIBLE)


def environment(home: Home, ports: Ports | None) -> dict[str, str]:
    """Return this process's environment with the variables of ``Home.environment``."""
    return without_real_cloud(os.environ) | home.environment(ports)


def without_real_cloud(env: Mapping[str, str]) -> dict[str, str]:
    """Return ``env`` without variables that point pulumi or Google's clients to a real cloud."""
    return {
        name: value
        for name, value in env.items()
        if name not in _REMOVED and not cloud_sdk.is_removed(name)
    }


def installer_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that pip and uv need to reach the user's package index."""
    env = os.environ if env is None else env
    return {name: value for name, value in env.items() if _is_for_installers(name)}


def server_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the server's variables. Jobs can read the variables of the server, their parent."""
    env = os.environ if env is None else env
    return {
        name: value
        for name, value in env.items()
        if _is_for_installers(name) or name.startswith(_SERVER_PREFIXES)
    }


def _is_for_installers(name: str) -> bool:
    if name in _BASIC or name in _NETWORK or name.upper() in _PROXIES:
        return True
    # Variables UV_PUBLISH_* contain tokens that no installation needs.
    prefixes = ("LC_", "XDG_", "PIP_", "UV_")
    return name.startswith(prefixes) and not name.startswith("UV_PUBLISH_")
