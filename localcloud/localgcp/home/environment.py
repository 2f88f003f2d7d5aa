"""Environment variables of programs in the local cloud, of its server, and of package installers.

The server and installers get listed variables of this machine, and jobs none of them: code that a
job brings along must not read what the user's shell holds (``docs/local-stack.md``, Who gets in).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from localgcp.clients import cloud_sdk
from localgcp.home import Home, Ports
from localgcp.system import gpus

# Each of these would lead pulumi or a client past the local cloud, or contradict what is set.
_REMOVED: Final = (
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "PULUMI_ACCESS_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    # Of another home, or of `vt local shell` around what needs no cloud.
    *("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST"),
    "ARTIFACT_REGISTRY_EMULATOR_HOST",
)
#: Variables for user, files and language.
_BASIC: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "TZ")
#: Variables for access to a package index; proxies also in lower case.
_NETWORK: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_INSTALLER_PREFIXES: Final = ("LC_", "XDG_", "PIP_", "UV_")
#: Prefix of uv's tokens for publishing, which no installation needs.
_PUBLISHING: Final = "UV_PUBLISH_"
_SERVER_PREFIXES: Final = ("VT_", "PYTHON", "GRPC_", "LD_LIBRARY_PATH", "DYLD_", gpus.VISIBLE)


def environment(home: Home, ports: Ports | None) -> dict[str, str]:
    """Return this process's environment with that of the local cloud added; see
    ``Home.environment``.
    """
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
    """Return the server's variables: those of installers, and its own settings.

    The server is the parent of every job, which can read the variables of its parent.
    """
    env = os.environ if env is None else env
    return {
        name: value
        for name, value in env.items()
        if _is_for_installers(name) or name.startswith(_SERVER_PREFIXES)
    }


def _is_for_installers(name: str) -> bool:
    if name in _BASIC or name in _NETWORK or name.upper() in _PROXIES:
        return True
    return name.startswith(_INSTALLER_PREFIXES) and not name.startswith(_PUBLISHING)
