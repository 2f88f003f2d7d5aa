"""The programs that come first on PATH in the local shell.

``pulumi-resource-gcp`` is the stand-in for the gcp plugin: the engine takes a plugin from PATH
before any other. ``pulumi install`` looks only among installed plugins, so it is one of these, too,
and nothing is downloaded: by the installed SDK's version, and by the one that templates pin.
``pulumi`` is a shim that keeps the checkout untouched (``localgcp.pulumi_shim``). ``gcloud`` is the
user's, where there is one, with a home of its own: it would write keys for ssh and settings of
Docker into the user's.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from localgcp.folders import make_folder
from localgcp.gcp.version import MEASURED, version
from localgcp.home import PRIVATE_UMASK, Home, path_without

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[1]


def install_tools(home: Home) -> None:
    """Write the programs, if they are not there as they should be."""
    python = shlex.quote(sys.executable)
    shim = shlex.quote(str(Path(__file__).with_name("pulumi_shim.py")))
    parent = shlex.quote(str(_PACKAGE_PARENT))
    # -S and -I: the shim is standard library only, and starts in a few hundredths of a second.
    # The engine writes state, plans and plugins below the home.
    private = f"umask {PRIVATE_UMASK:03o}\n"
    _write(home.bin / "pulumi", f'{private}exec {python} -S -I {shim} "$@"')
    plugins = home.pulumi_home / "plugins"
    versions = sorted({version(), MEASURED})
    for folder in (home.bin, *(plugins / f"resource-gcp-v{each}" for each in versions)):
        _write(
            folder / "pulumi-resource-gcp",
            f"{private}export PYTHONPATH={parent}${{PYTHONPATH:+:$PYTHONPATH}}\n"
            f'exec {python} -m localgcp.gcp "$@"',
        )
    gcloud = shutil.which("gcloud", path=path_without(home.bin))
    if gcloud is None:
        (home.bin / "gcloud").unlink(missing_ok=True)
        return
    own = shlex.quote(str(home.cloud_sdk / "home"))
    _write(
        home.bin / "gcloud",
        f'unset DOCKER_CONFIG KUBECONFIG\nHOME={own} exec {shlex.quote(gcloud)} "$@"',
    )


def _write(path: Path, body: str) -> None:
    text = f"#!/bin/sh\n# Written by `vt local`.\n{body}\n"
    if path.exists() and path.read_text() == text:
        return
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.chmod(0o700)
    partial.replace(path)
