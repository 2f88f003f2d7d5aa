"""Settings for programs that build images here: where base images come from, what RUN may read.

Both are files in the home that ``vt local shell`` and ``vt images build`` name in variables:
``CONTAINERS_REGISTRIES_CONF`` and ``CONTAINERS_CONF`` (containers-registries.conf(5),
containers.conf(5)), which buildah and podman read. Settings of the user's own win.
"""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localgcp.containers import mirror
from localgcp.containers.requests import MIRROR
from localgcp.home import Home, open_private
from localgcp.home.environment import installer_environment

_CERTIFICATES: Final = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PIP_SECONDS: Final = 30.0


def write_settings(home: Home, port: int) -> None:
    """Write both files for the registry at ``port``; remove them if nothing is to be said."""
    _write(home.registries, registries(port) if port and mirror.has_stand_in() else "")
    _write(home.builders, settings(readable_files()) if port else "")


def registries(port: int) -> str:
    """The mirror first, then Docker Hub."""
    return (
        'unqualified-search-registries = ["docker.io"]\n'
        '[[registry]]\nprefix = "docker.io"\nlocation = "docker.io"\n'
        f'[[registry.mirror]]\nlocation = "127.0.0.1:{port}/{MIRROR}"\ninsecure = true\n'
    )


def settings(files: list[Path]) -> str:
    """Read-only mounts of files at the same place: no layer ever has them."""
    volumes = json.dumps([f"{file}:{file}:ro" for file in files])
    return f"[containers]\nvolumes = {volumes}\n" if files else ""


def readable_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """What an installer needs of this machine to reach the package index: pip's configuration
    and the certificates that it or a variable names. Files with a password are left out.
    """
    env = os.environ if env is None else env
    named = [env[name] for name in _CERTIFICATES if env.get(name)]
    found: list[Path] = []
    for path in _pip_files():
        text = path.read_text(errors="replace")
        if "@" in text:  # an index with a password must not reach the code of a build
            continue
        found.append(path)
        named += _certificates(text)
    return sorted({*found, *(Path(name) for name in named if Path(name).is_file())})


def _pip_files() -> list[Path]:
    """Configuration files that pip reads on this machine, as ``pip config debug`` lists them."""
    command = [sys.executable, "-m", "pip", "config", "debug"]
    try:
        printed = subprocess.run(
            command,
            env=installer_environment(),
            capture_output=True,
            text=True,
            timeout=_PIP_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = (line.strip() for line in printed.splitlines())
    paths = (Path(line.rpartition(", exists:")[0]) for line in lines if line.endswith("True"))
    return [path for path in paths if path.is_file() and Path("/etc") in path.parents]


def _certificates(text: str) -> list[str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    sections = (dict(parser.items(section)) for section in parser.sections())
    return [section["cert"] for section in sections if "cert" in section]


def _write(path: Path, text: str) -> None:
    if not text:
        path.unlink(missing_ok=True)
        return
    with open_private(path, "w") as file:
        file.write(text)
