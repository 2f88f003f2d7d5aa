"""``vt setup``: pulumi and policies beside vt. Exit code: 0 installed, 1 not, 130 interrupted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from vertex_training_cli.status import print_line
from vertex_training_cli.toolchain.cache import lock
from vertex_training_cli.toolchain.console import step
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.policy_env import find_uv, install_policy_packages, is_whole
from vertex_training_cli.toolchain.pulumi_cli import (
    Pulumi,
    check_source,
    ensure_pulumi,
    install_gcp_plugin,
)

Check = Annotated[bool, typer.Option("--check", help="Only say what is in place.")]
Deploy = Annotated[
    bool,
    typer.Option(
        "--deploy", help="Take only what is pinned by SHA-256, and the gcp plugin as well."
    ),
]

Releases = Annotated[
    Path | None,
    typer.Option(
        "--releases",
        metavar="FILE",
        help="More SHA-256 of official archives, as sha256sum prints them.",
    ),
]


def setup(check: Check = False, deploy: Deploy = False, releases: Releases = None) -> None:
    """Install pulumi and its plugins beside vt, in the same virtual environment.

    The packages of the policy pack get an environment inside of it, each by its hash.

    From PATH, from the official release, or built with Go, whichever works first. In a checkout of
    this project `make setup` does it. Environment: VT_CACHE_DIR (what is downloaded or built is
    kept there), VT_PULUMI_SOURCE=auto|path|official|build.
    """
    source = os.environ.get("VT_PULUMI_SOURCE") or "auto"
    layout = Layout.of_this_environment(deploy=deploy, own_releases=releases)
    found = installed_pulumi(layout, source) if check else install_pulumi(layout, source)
    if found is None:
        print_line("setup: pulumi or the policies are missing here, or out of date. Hint: vt setup")
        raise typer.Exit(1)
    print_line(f"pulumi {found.version}: {found.engine}")
    print_line(f"Python language host: {found.language_host}")


def installed_pulumi(layout: Layout, source: str) -> Pulumi | None:
    """The ``pulumi`` of the environment, if all of it is whole and as this version installs it."""
    try:
        record = json.loads(layout.stamp.read_text())
        digest = record.pop("digest")
        found = Pulumi(**record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # none, or one that another version recorded
    commands = [layout.bin / name for name in ("pulumi", *PLUGINS)]
    whole = is_whole(layout) and all(os.access(command, os.X_OK) for command in commands)
    return found if whole and digest == layout.inputs_digest(source) else None


def install_pulumi(layout: Layout, source: str) -> Pulumi:
    """Put ``pulumi``, its plugins and the policy pack's packages into the environment.

    Does nothing where they are.

    ``source`` is what VT_PULUMI_SOURCE says: auto, path, official or build.

    Raises:
        SetupError: no source works, or the packages cannot be had; with the reasons.
    """
    check_source(source)
    with lock(layout.toolchain):
        if found := installed_pulumi(layout, source):
            return found
        layout.stamp.unlink(missing_ok=True)
        with step("pulumi") as current:
            found = ensure_pulumi(layout, source)
            current.note = f"{found.version}, {found.engine}"
        if layout.deploy:
            with step("gcp plugin") as current:
                current.note = install_gcp_plugin(layout)
        with step("policy pack") as current:
            current.note = install_policy_packages(layout, find_uv(layout))
        record = {"digest": layout.inputs_digest(source), **found.as_record()}
        layout.stamp.write_text(json.dumps(record, indent=2) + "\n")
    return found
