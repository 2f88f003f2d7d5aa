"""Runs git on a checkout, independent of variables and settings of its caller.

``GIT_DIR``, ``GIT_WORK_TREE`` and their like, or ``core.worktree``, lead git to files of another
folder. Settings name programs that git starts on its way: a monitor of files, and hooks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: Options of git: ignore `git replace`, accept no folder of a checkout as a bare repository, and
#: start no program.
OPTIONS: Final = (
    "--no-replace-objects",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the git command that runs in ``folder`` on its checkout."""
    top = checkout_around(folder.resolve())
    files = (f"--work-tree={top}",) if top else ()
    return ["git", "-C", str(folder), *files, *OPTIONS, *arguments]


def checkout_around(folder: Path) -> Path | None:
    """Return ``folder`` or its nearest parent that has a ``.git``, or None."""
    return next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None
    )


def variables() -> dict[str, str]:
    """Return the environment variables of this process without git's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
