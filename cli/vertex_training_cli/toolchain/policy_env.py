"""The environment of the policy pack, inside of .venv: its packages by hash, and this package.

The policy SDK needs an older protobuf than Google's clients. So the pack sees none of the packages
in .venv but ``vertex_training``, of which policies take names and patterns of secrets.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.python_env import count_pins, run_installer

#: What a build asks an index for has no hash among the pins: nothing is built.
_PINNED: Final = ("--require-hashes", "--only-binary", ":all:")


def install_policy_packages(layout: Layout, uv: Path | None) -> str:
    """Create the environment anew, by ``uv`` or else by venv and pip. Returns a note."""
    pins = layout.policy_requirements
    create_environment(layout.policy_venv, pins, "the policy pack", layout, uv)
    if layout.environment:
        _link_package(layout)
    return f"{count_pins(pins)} packages by hash, in an environment of their own"


def create_environment(
    folder: Path, pins: Path, what: str, layout: Layout, uv: Path | None
) -> None:
    """Make the environment ``folder`` of ``what`` anew, with the packages of ``pins`` by hash.

    Raises:
        SetupError: an installer failed.
    """
    python = folder / "bin" / "python"
    if uv:
        create = [uv, "venv", "--quiet", "--clear", "--python", layout.python, folder]
        install = [uv, "pip", "sync", "--quiet", "--python", python, *_PINNED, pins]
    else:
        create = [layout.python, "-m", "venv", "--clear", folder]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += [*_PINNED, "-r", pins]
    run_installer(f"creating the environment of {what}", create, layout)
    run_installer(f"installing {what}'s packages", install, layout)


def is_whole(layout: Layout) -> bool:
    """Whether the environment is there, and in an installed package's has that package."""
    if not os.access(layout.policy_venv / "bin" / "python", os.X_OK):
        return False
    ours = layout.root / "vertex_training"
    links = [folder / "vertex_training" for folder in _site_packages(layout)]
    return layout.environment is None or any(link.resolve() == ours.resolve() for link in links)


def _link_package(layout: Layout) -> None:
    """Let the pack import this package alone, also after a newer release takes its place.

    In a checkout, ``policy/__main__.py`` finds the package beside its folder.
    """
    for folder in _site_packages(layout):
        (folder / "vertex_training").symlink_to(layout.root / "vertex_training")


def _site_packages(layout: Layout) -> list[Path]:
    # One of them: lib64 is a link to lib where it exists.
    return sorted(layout.policy_venv.glob("lib/python*/site-packages"))
