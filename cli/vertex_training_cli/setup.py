"""``vt setup``: installs pulumi, its plugins and the policy pack beside ``vt``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vertex_training_cli.console import print_line
from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.main import install, installed, report
from vertex_training_cli.toolchain.python_env import create_environment, find_uv

Check = Annotated[bool, typer.Option("--check", help="Only print the installed programs.")]
Deploy = Annotated[
    bool,
    typer.Option("--deploy", help="Install only packages pinned by SHA-256 and the gcp plugin."),
]

Releases = Annotated[
    Path | None,
    typer.Option(
        "--releases",
        metavar="FILE",
        help="File with additional SHA-256 sums of official archives, in the format of sha256sum.",
    ),
]


def setup(check: Check = False, deploy: Deploy = False, releases: Releases = None) -> None:
    """Install pulumi and its plugins into the virtual environment of vt.

    The policy pack is installed into a separate environment, with hashes checked. pulumi is copied
    from PATH, downloaded as the official release, or built with Go. The first method that succeeds
    is used. In a checkout, `make setup` runs this command.

    Environment variables: VT_CACHE_DIR (folder of downloads and builds),
    VT_PULUMI_SOURCE=auto|path|official|build.

    Example: `VT_PULUMI_SOURCE=path vt setup`.
    """
    source = os.environ.get("VT_PULUMI_SOURCE") or "auto"
    layout = Layout.of_this_environment(deploy=deploy, own_releases=releases)
    engine = installed(layout, source) if check else install(layout, source)
    if engine is None:
        print_line("setup: pulumi or the policy pack is missing or out of date. Hint: run vt setup")
        raise typer.Exit(1)
    for line in report(engine).splitlines():
        print_line(line)


def install_once(folder: Path, marker: Path, pins: Path, what: str) -> None:
    """Create the environment of a tool and then its marker file, unless the file exists."""
    if not marker.is_file():
        layout = Layout.of_this_environment(deploy=False)
        layout.toolchain.mkdir(parents=True, exist_ok=True)
        create_environment(folder, pins, what, layout, find_uv(layout.bin / "uv"))
        marker.touch()
