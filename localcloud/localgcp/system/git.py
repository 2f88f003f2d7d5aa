"""Run git in a checkout, independent of the user's variables and settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: Options that ignore `git replace`, reject bare repositories in a checkout and start no program.
OPTIONS: Final = (
    "--no-replace-objects",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)


def command(folder: Path, *arguments: str) -> list[str]:
    """Return a git command that runs in ``folder`` on the checkout around ``folder``."""
    top = checkout_around(folder.resolve())
    files = (f"--work-tree={top}",) if top else ()
    return ["git", "-C", str(folder), *files, *OPTIONS, *arguments]


def checkout_around(folder: Path) -> Path | None:
    """Return the nearest folder with a ``.git``: ``folder`` or one of its parents, or None."""
    folders = (folder, *folder.parents)
    return next((parent for parent in folders if (parent / ".git").exists()), None)


def variables() -> dict[str, str]:
    """Return the environment variables of this process without those of git."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
